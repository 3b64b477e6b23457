"""How often the intervals of fitted laws cover the exact metric when the users are drawn anew each time, too.

benchmarks/estimators.py samples candidates for the same users again and again, so what is special about their ranks is
part of the bias. Here the ranks of all users are drawn from the law that ~smooth fits to X of Krichene & Rendle, then
candidates are sampled, and the interval is compared with the exact metric of these very ranks.

    python benchmarks/fresh_ranks.py [--repetitions 200]
"""

import argparse
from collections.abc import Iterator

import numpy as np

import truerank as tr
from truerank.core.checks import Floats
from truerank.estimators.pooled import Smooth
from truerank.estimators.rank_laws import Cells
from truerank.papers.krichene_rendle_2020.movielens import embedded

METRICS = ("recall@10", "ndcg@10", "ap")
ESTIMATORS = ("smooth", "monotone")
DESIGNS = (tr.InverseSampling(1, most=1_188), tr.InverseSampling(2), tr.InverseSampling(3))
NORMAL = 1.96


def fresh(exact: tr.Ranks, law: Floats, within: Cells, seed: int) -> tr.Ranks:
    """Return ranks that are drawn from a law, among as many candidates as others."""
    rng = np.random.default_rng(seed)
    cell = rng.choice(len(within), p=law, size=len(exact))
    above = within.starts[cell] + rng.integers(0, within.sizes[cell])
    return tr.Ranks(above=np.minimum(above, exact.draws), n_candidates=exact.n_candidates)


def deviations(exact: tr.Ranks, design: tr.SamplingDesign, seed: int) -> Iterator[tuple[float, float]]:
    """Yield how far each estimate is off, in percent, and in its own errors."""
    sampled = design.draw(exact, rng=seed)
    for estimator in ESTIMATORS:
        for name in METRICS:
            metric, truth = tr.metric(f"{name}~{estimator}"), float(tr.values(exact, name).mean())
            off = float(tr.values(sampled, metric).mean()) - truth
            yield 100 * off / truth, off / metric.hidden_error(sampled)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    repetitions = parser.parse_args().repetitions
    exact = embedded().ranks["X"].break_ties("random", rng=0)
    fitted = Smooth().laws(tr.InverseSampling(6).draw(exact, rng=0))
    law, within = fitted.laws[0], fitted.groups[0].seen.cells
    for design in DESIGNS:
        drawn = (fresh(exact, law, within, seed) for seed in range(repetitions))
        off = np.array([list(deviations(ranks, design, seed)) for seed, ranks in enumerate(drawn)])
        off = off.reshape(repetitions, len(ESTIMATORS), len(METRICS), 2)
        for place, estimator in enumerate(ESTIMATORS):
            error, covered = off[:, place, :, 0], np.abs(off[:, place, :, 1]) <= NORMAL
            rmse = np.sqrt(np.square(error).mean(axis=0))
            texts = ("/".join(f"{x:.{digits}f}" for x in row) for row, digits in ((rmse, 1), (covered.mean(axis=0), 3)))
            print(design, estimator, *texts, flush=True)


if __name__ == "__main__":
    main()
