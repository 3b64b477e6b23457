"""How far estimates from few scores are from the exact metrics, for every design and estimator at equal budgets.

Exact ranks of several recommenders are sampled again and again. For each design and estimator the table shows the draws
per relevant item's user, and, in percent of the exact value, bias, standard deviation and root mean squared error,
pooled over the recommenders; how often the 95 % interval of the candidates' sampling covers the exact value; and how
often the pair of recommenders that is hardest to tell apart comes out in its exact order.

    python benchmarks/estimators.py [--repetitions 5] [--ranks NAME=FILE ...] [--budgets 100 300]

Without --ranks, the ranks of X, Y and Z on MovieLens 1M that come with the package are used.
"""

import argparse
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool

import numpy as np

import truerank as tr
from truerank.arrays import Floats
from truerank.papers.krichene_rendle_2020.experiment import embedded

METRICS = ("recall@10", "ndcg@10", "ap")
GAMMAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
CAPS = (100, 300, 1_000, 2_000)


@dataclass(frozen=True)
class Result:
    """Estimates of each metric: arrays of shape (repetitions, recommenders, metrics), NaN where there is none."""

    design: str
    estimator: str
    draws: float
    estimates: Floats
    errors: Floats
    seconds: float


def designs(ranks: dict[str, tr.Ranks], budgets: Sequence[int]) -> list[tr.SamplingDesign]:
    """Return inverse sampling with one to three hits and several caps, and fixed sizes."""
    smallest = min(int(one.draws.min()) for one in ranks.values())
    fixed = [tr.UniformSampling(budget) for budget in budgets if budget <= smallest]
    caps = [tr.InverseSampling(1, cap) for cap in CAPS]
    return [*fixed, *caps, *(tr.InverseSampling(hits) for hits in (1, 2, 3))]


def estimators(design: tr.SamplingDesign, capped: bool) -> list[str]:
    pooled = ["monotone", "smooth", "em"]
    if not design.needs_estimator:
        return [*pooled, "smooth(10)", *(f"bv({gamma:g})" for gamma in GAMMAS)]
    return pooled if capped else ["unbiased", *pooled]


def run(design: tr.SamplingDesign, ranks: dict[str, tr.Ranks], repetitions: int) -> list[Result]:
    """Sample and estimate, again and again."""
    names = estimators(design, capped=getattr(design, "most", None) is not None)
    shape = (len(names), repetitions, len(ranks), len(METRICS))
    found, errors, seconds, draws = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(len(names)), []
    for seed, (place, exact) in itertools.product(range(repetitions), enumerate(ranks.values())):
        sampled = design.draw(exact, rng=seed)
        draws.append((sampled.n_scored - sampled.n_relevant).mean())
        for number, name in enumerate(names):
            start = time.perf_counter()
            for column, metric in enumerate(METRICS):
                if name == "unbiased" and metric != "ap":
                    continue
                chosen = tr.metric(f"{metric}~{name}")
                values = tr.values(sampled, chosen)
                at = (number, seed, place, column)
                found[at], errors[at] = np.nanmean(values), chosen.hidden_error(sampled) or np.nan
            seconds[number] += time.perf_counter() - start
    each = repetitions * len(ranks)
    return [
        Result(str(design), name, float(np.mean(draws)), found[at], errors[at], seconds[at] / each)
        for at, name in enumerate(names)
    ]


def best_gamma(results: list[Result], truth: Floats) -> list[Result]:
    """Replace all bias-variance results of a design by the best for each metric, which only an oracle can choose."""
    of_gamma = [result for result in results if result.estimator.startswith("bv")]
    if not of_gamma:
        return results
    size = np.stack([rmse(result, truth) for result in of_gamma])
    best = np.stack([of_gamma[row].estimates[..., column] for column, row in enumerate(size.argmin(axis=0))], axis=-1)
    first = of_gamma[0]
    chosen = Result(first.design, "bv(best)", first.draws, best, first.errors * np.nan, first.seconds)
    return [*(result for result in results if result not in of_gamma), chosen]


def relative(result: Result, truth: Floats) -> Floats:
    return 100 * (result.estimates - truth) / truth


def rmse(result: Result, truth: Floats) -> Floats:
    return np.asarray(np.sqrt(np.square(relative(result, truth)).mean(axis=(0, 1))))


def order(result: Result, truth: Floats) -> Floats:
    """How often the worst pair is in its exact order, by metric."""
    pairs = itertools.combinations(range(truth.shape[0]), 2)
    right = [np.sign(result.estimates[:, a] - result.estimates[:, b]) == np.sign(truth[a] - truth[b]) for a, b in pairs]
    shares = np.min([each.mean(axis=0) for each in right], axis=0)
    return np.where(np.isnan(result.estimates).any(axis=(0, 1)), np.nan, shares)


def show(result: Result, truth: Floats) -> str:
    errors = relative(result, truth)
    deviation = np.sqrt(errors.var(axis=0).mean(axis=0))
    inside = np.abs(result.estimates - truth) <= 1.96 * result.errors
    covered = np.where(np.isnan(result.errors).any(axis=(0, 1)), np.nan, inside.mean(axis=(0, 1)))
    columns = (errors.mean(axis=(0, 1)), deviation, rmse(result, truth))
    shares = (covered, order(result, truth))
    texts = [*(_joined(each, "{:.1f}") for each in columns), *(_joined(each, "{:.2f}") for each in shares)]
    return (
        "| "
        + " | ".join([result.design, result.estimator, f"{result.draws:.0f}", *texts, f"{result.seconds:.2f}"])
        + " |"
    )


def _joined(numbers: Floats, form: str) -> str:
    return "/".join("-" if np.isnan(number) else form.format(number) for number in numbers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--budgets", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--ranks", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    named = dict(text.split("=", 1) for text in given.ranks or ())
    ranks = {name: tr.Ranks.load(path) for name, path in named.items()} or embedded().ranks
    truth = np.array([[tr.estimate(one, metric).mean for metric in METRICS] for one in ranks.values()])
    print(f"{', '.join(ranks)}; {' / '.join(METRICS)}; {given.repetitions} repetitions")
    print("| design | estimator | draws | bias, % | sd, % | RMSE, % | coverage | order | s |\n" + "|---" * 9 + "|")
    work = partial(run, ranks=ranks, repetitions=given.repetitions)
    with Pool(given.processes) as pool:
        for results in pool.imap(work, designs(ranks, given.budgets)):
            print("\n".join(show(result, truth) for result in best_gamma(results, truth)), flush=True)


if __name__ == "__main__":
    main()
