"""Section 6: three recommenders on MovieLens 1M, sampled with m = 100 and corrected (Tables 3 and 4).

The published cells come from 100 repetitions. In each, ties are broken anew, 100 of the user's own irrelevant
candidates are drawn without replacement, and the corrections suppose one n, the mean, and sampling with
replacement ("as published"). Beside that stands what truerank does by default: each user's own n and the law of
the sampling that was done. Expectations are exact, so that only the published numbers carry Monte-Carlo error.

Arrays that end in (metrics, columns) follow METRICS and TABLE_3_COLUMNS, whose first column is the exact metric.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truerank.analysis.risks import sampled_tables
from truerank.arrays import Floats, Ints
from truerank.corrections import corrected
from truerank.evaluation.estimates import estimate
from truerank.metrics.names import metric as as_metric
from truerank.papers.krichene_rendle_2020.cells import Cell
from truerank.papers.krichene_rendle_2020.experiment import SAMPLED, Study
from truerank.papers.krichene_rendle_2020.published import TABLE_3, TABLE_3_COLUMNS, TABLE_4
from truerank.ranking.ranks import Ranks
from truerank.sampling import laws
from truerank.sampling.designs import SamplingDesign

METRICS = ("recall@10", "ndcg@10", "ap", "auc")
DESIGN = SamplingDesign(SAMPLED)
SUPPOSED = SamplingDesign(SAMPLED, replace=True)
REPETITIONS = 100


def repeat(study: Study, *, rng: int = 0) -> dict[str, Floats]:
    """Do as the paper did, 100 times: break ties, draw 100 candidates per user, correct.

    Returns means over users by recommender, of shape (repetitions, metrics, columns).
    """
    generator = np.random.default_rng(rng)
    values = _as_published(int(study.y.n_candidates.mean()))
    return {
        name: np.array([_one_repetition(ranks, values, generator) for _ in range(REPETITIONS)])
        for name, ranks in study.ranks.items()
    }


def _one_repetition(ranks: Ranks, values: Floats, generator: np.random.Generator) -> Floats:
    order = ranks.break_ties("random", rng=generator)
    counts = np.bincount(DESIGN.draw(order, rng=generator).above, minlength=DESIGN.m + 1)
    return _beside_exact(order, np.tensordot(counts / len(ranks), values, axes=1))


def _beside_exact(ranks: Ranks, sampled: Floats) -> Floats:
    exact = [[estimate(ranks, metric).mean] for metric in METRICS]
    return np.hstack([exact, sampled])


def table_3(study: Study, repeated: Mapping[str, Floats]) -> list[Cell]:
    """Return every cell of Table 3 in percent; sampled and corrected ones by their exact expectation."""
    values = _as_published(int(study.y.n_candidates.mean()))
    own_values = _by_default(np.unique(study.y.n_candidates))
    ours = {name: 100 * _expected(ranks, values) for name, ranks in study.ranks.items()}
    own_n = {name: 100 * _expected_own(ranks, own_values) for name, ranks in study.ranks.items()}
    seeds = 100 * np.array([_expected(ranks, values) for ranks in study.x])
    return [
        Cell(
            table=3,
            row=f"{metric} {name}",
            column=title,
            published=text.partition("±")[0],
            ours=float(ours[name][at, column]),
            own_n=float(own_n[name][at, column]),
            seed_range=_range(seeds[:, at, column]) if name == "X" else None,
            **_deviations(text, 100 * repeated[name][:, at, column]),
        )
        for (metric, name), row in TABLE_3.items()
        for at in [METRICS.index(metric)]
        for column, (title, text) in enumerate(zip(TABLE_3_COLUMNS, row.split(), strict=True))
    ]


def _range(numbers: Floats) -> tuple[float, float]:
    return float(numbers.min()), float(numbers.max())


def _deviations(printed: str, repeated: Floats) -> dict[str, float]:
    """The error of a printed number; an exact metric is printed for one order of the ties."""
    # exactly 0 where nothing ties
    ours = float((repeated - repeated[0]).std())
    _, _, published = printed.partition("±")
    if not published:
        return {"standard_error": ours}
    error = float(published) / REPETITIONS**0.5
    return {"standard_error": error, "published_deviation": float(published), "deviation": ours}


def table_4(study: Study, repeated: Mapping[str, Floats]) -> list[Cell]:
    """Return every cell of Table 4: in how many repetitions a pair of recommenders is in its exact order."""
    exact = {name: [estimate(ranks, metric).mean for metric in METRICS] for name, ranks in study.ranks.items()}
    cells = []
    for (metric, a, b), counts in TABLE_4.items():
        at = METRICS.index(metric)
        sign = np.sign(exact[a][at] - exact[b][at])
        right = (np.sign(repeated[a][:, at] - repeated[b][:, at]) == sign).sum(axis=0)
        for column, published, ours in zip(TABLE_3_COLUMNS[1:], counts, right[1:].tolist(), strict=True):
            share = (published + ours) / 2 / REPETITIONS
            # of the difference of two binomial counts
            error = (2 * REPETITIONS * share * (1 - share)) ** 0.5
            cells.append(Cell(4, f"{metric} {a} vs {b}", column, str(published), ours, error))
    return cells


def _texts(metric: str) -> list[str]:
    return [metric, *(metric + column for column in TABLE_3_COLUMNS[2:])]


def _as_published(n: int) -> Floats:
    """What each sampled count adds, by eq. 15 and one n: an array of shape (m + 1, metrics, columns less exact)."""
    values = np.stack(
        [
            [sampled_tables(as_metric(text), SUPPOSED, [corrected.Cell(1, 1, n)])[0] for text in _texts(m)]
            for m in METRICS
        ]
    )
    values[:, TABLE_3_COLUMNS.index("~rank") - 1] = [_rank_estimate(metric, n) for metric in METRICS]
    return np.moveaxis(values, -1, 0)


def _rank_estimate(metric: str, n: int) -> Floats:
    """Eq. 20, but with m + 1 in place of m, as the published AUC shows."""
    rank = 1 + (n - 1) * np.arange(DESIGN.m + 1) // (DESIGN.m + 1)
    one = np.ones_like(rank)
    return as_metric(metric).term(rank, one, one, n * one)


def _by_default(sizes: Ints) -> Floats:
    """What each sampled count adds by the law of the sampling that was done, for each n in `sizes`."""
    needed = [corrected.Cell(1, 1, int(size)) for size in sizes]
    values = [[sampled_tables(as_metric(text), DESIGN, needed) for text in _texts(metric)] for metric in METRICS]
    return np.moveaxis(np.array(values), (0, 1), (-2, -1))


def _law(ranks: Ranks) -> Floats:
    """Each user's law of the sampled count, ties in random order."""
    return laws.tied_rows(ranks.above, ranks.tied, DESIGN.m, ranks.n_candidates - 1)


def _expected(ranks: Ranks, values: Floats) -> Floats:
    """Expected means with one table for all users, of shape (metrics, columns)."""
    return _beside_exact(ranks, np.tensordot(_law(ranks).mean(axis=0), values, axes=1))


def _expected_own(ranks: Ranks, values: Floats) -> Floats:
    """Expected means with a table for each n, in ascending order."""
    which = np.unique(ranks.n_candidates, return_inverse=True)[1]
    mass = np.zeros(values.shape[:2])
    np.add.at(mass, which, _law(ranks) / len(ranks))
    return _beside_exact(ranks, np.tensordot(mass, values, axes=2))
