"""Metrics at the top from few scores with nothing assumed: how far estimates are off, and how often intervals hold.

    python benchmarks/decided.py errors [--gowalla DIR] [--repetitions 60]
    python benchmarks/decided.py coverage [--repetitions 1000]

"errors": exact ranks are sampled again and again by `InverseSampling(2, decide=10, beyond=...)`, by inverse sampling
with a fitted law (``~smooth``), and uniformly with the best correction of `bv` for each metric, which only an oracle
knows. Root mean squared errors are in percent of the exact value over the very users, pooled over the recommenders.
"humps" are the users of X with half of the ranks moved to 11..20, where laws that are fitted fail.

"coverage": users are drawn from laws of ranks, and then their candidates; how often the 95 % interval of
`estimate` holds the mean of the law, and half its width in percent of that mean. Tables are in results/.
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

import truerank as tr
from real_ranks import real_ranks, save
from truerank.core.checks import Ints
from truerank.estimators import corrected
from truerank.evaluation.intervals import Units, attainable
from truerank.papers.krichene_rendle_2020.movielens import embedded

METRICS = ("recall@10", "ndcg@10", "ap")
BEYOND = (0.1, 0.2, 0.3)
GAMMAS = (0.001, 0.01, 0.1)
N = 3_706


def humps(ranks: tr.Ranks) -> tr.Ranks:
    moved = np.random.default_rng(0).integers(11, 21, len(ranks))
    return tr.Ranks.from_ranks(np.where(np.arange(len(ranks)) % 2, moved, ranks.rank), n=ranks.n_candidates)


def data(gowalla: Path | None) -> dict[str, Mapping[str, tr.Ranks]]:
    study = embedded().ranks
    found: dict[str, Mapping[str, tr.Ranks]] = {"MovieLens 1M": study, "humps": {"X": humps(study["X"])}}
    return found | ({} if gowalla is None else {"Gowalla": _few(real_ranks(gowalla)["Gowalla"])})


def _few(ranks: Mapping[str, tr.Ranks]) -> dict[str, tr.Ranks]:
    return {name: one[:1_000] for name, one in ranks.items()}


def designs(ranks: Mapping[str, tr.Ranks]) -> Iterator[tuple[tr.SamplingDesign, tuple[str, ...]]]:
    """Yield designs and the corrections to try; uniform samples are as large as inverse sampling's."""
    for beyond in BEYOND:
        yield tr.InverseSampling(2, decide=10, beyond=beyond), ("unbiased",)
    yield tr.InverseSampling(2), ("smooth",)
    yield tr.InverseSampling(3), ("smooth",)
    cost = np.mean([tr.InverseSampling(2, decide=10).draw(one, rng=0).draws.mean() for one in ranks.values()])
    yield tr.UniformSampling(round(float(cost))), tuple(f"bv({gamma:g})" for gamma in GAMMAS)


def errors(ranks: Mapping[str, tr.Ranks], repetitions: int) -> Iterator[list[object]]:
    """Yield for each design the mean number of draws, the errors of the metrics, and the largest bias in errors."""
    truth = np.array([[tr.estimate(one, metric).mean for metric in METRICS] for one in ranks.values()])
    for design, names in designs(ranks):
        draws, found = [], np.empty((repetitions, len(names), *truth.shape))
        for seed in range(repetitions):
            for place, one in enumerate(ranks.values()):
                sampled = design.draw(one, rng=seed)
                draws.append(sampled.draws.mean())
                for at, name in enumerate(names):
                    own = [np.nanmean(tr.values(sampled, f"{metric}~{name}")) for metric in METRICS]
                    found[seed, at, place] = own
        gaps = found / truth - 1
        rmse = 100 * np.sqrt((gaps**2).mean(axis=(0, 2))).min(axis=0)
        bias = 100 * gaps.mean(axis=(0, 2))[0]
        best = names[0] if len(names) == 1 else "bv, best gamma"
        yield [str(design), best, round(float(np.mean(draws))), *rmse.round(2).tolist(), *bias.round(2).tolist()]


def laws() -> dict[str, Ints]:
    """Return ranks of 6,040 users each."""
    rng, at = np.random.default_rng(0), np.arange(6_040)
    rare, few = at % 100 == 0, at % 33 == 0
    return {
        "X": embedded().ranks["X"].rank,
        "half at 11-20": np.where(at % 2, rng.integers(11, 21, at.size), rng.integers(1, N, at.size)),
        "half at 8-59": np.where(at % 2, rng.integers(8, 60, at.size), rng.integers(60, N, at.size)),
        "1 % at 1-10": np.where(rare, rng.integers(1, 11, at.size), 500),
        "1 % at 10": np.where(rare, 10, 500),
        "3 % at 10": np.where(few, 10, 500),
        "all at 10": np.full(at.size, 10),
    }


def _ends(ranks: tr.Ranks, metric: str) -> tr.Interval:
    ends = attainable(ranks, corrected.recommended(tr.metric(metric), ranks))
    assert ends is not None
    return ends


def coverage(repetitions: int) -> Iterator[list[object]]:
    """Yield how often intervals hold the mean of a law; all users of all repetitions are drawn at once."""
    for (name, ranks), beyond in ((law, beyond) for law in laws().items() for beyond in (0.2, 0.4)):
        design, exact = tr.InverseSampling(2, decide=10, beyond=beyond), tr.Ranks.from_ranks(ranks, n=N)
        for users in (100, 1_000):
            rng = np.random.default_rng(1)
            sampled = design.draw(tr.Ranks.from_ranks(rng.choice(ranks, repetitions * users), n=N), rng=rng)
            for metric in METRICS[:2]:
                truth, ends = tr.estimate(exact, metric).mean, _ends(sampled[:1], metric)
                values = tr.values(sampled, metric).reshape(repetitions, users)
                found = np.array([Units.of(own).interval(0.95, ends) for own in values])
                held = (found[:, 0] <= truth) & (truth <= found[:, 1])
                shares = [held.mean(), (found[:, 1] - found[:, 0]).mean() / 2 / truth]
                yield [name, str(design), users, metric, *(round(100 * float(each), 1) for each in shares)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["errors", "coverage"])
    parser.add_argument("--gowalla", type=Path)
    parser.add_argument("--repetitions", type=int)
    options = parser.parse_args()
    rows: list[list[object]] = []
    if options.what == "coverage":
        header = ["law", "design", "users", "metric", "coverage", "half width"]
        for row in coverage(options.repetitions or 1_000):
            rows.append(row)
            print(*row, sep="\t", flush=True)
    else:
        header = ["data", "design", "estimator", "draws", *METRICS, *(f"bias of {metric}" for metric in METRICS)]
        for name, ranks in data(options.gowalla).items():
            for row in errors(ranks, options.repetitions or 60):
                rows.append([name, *row])
                print(name, *row, sep="\t", flush=True)
    save(f"decided_{options.what}.csv", header, rows)


if __name__ == "__main__":
    main()
