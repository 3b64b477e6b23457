"""Section 6: three recommenders on MovieLens 1M, sampled with m = 100 and corrected (Tables 3 and 4).

The published cells come from 100 repetitions. In each, 100 of the user's irrelevant candidates are drawn without
replacement, ties are broken anew, and the corrections assume the same n, the mean, for all users and sampling with
replacement ("as published"). Beside these are the results with truerank's defaults: each user's own n and the law of
the actual sampling. Expectations are exact, so only the published numbers have Monte Carlo error.

Arrays that end in (metrics, columns) follow METRICS and TABLE_3_COLUMNS, whose first column is the exact metric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from truerank.analysis.risks import risks
from truerank.arrays import Floats, Ints
from truerank.corrections.base import Case, Correction, CorrectionTable
from truerank.corrections.corrected import Corrected
from truerank.corrections.counts import as_sampled, counted
from truerank.corrections.reading import metric as as_metric
from truerank.evaluation.estimates import estimate
from truerank.metrics.base import Metric, Term
from truerank.papers.krichene_rendle_2020.comparisons import Compared
from truerank.papers.krichene_rendle_2020.experiment import SAMPLED, Study
from truerank.papers.krichene_rendle_2020.published import TABLE_3, TABLE_3_COLUMNS, TABLE_4
from truerank.ranking.ranks import Ranks
from truerank.sampling.expectations import ItemLaws
from truerank.sampling.laws import HYPERGEOMETRIC, Law
from truerank.sampling.uniform import UniformSampling

METRICS = ("recall@10", "ndcg@10", "ap", "auc")
DESIGN = UniformSampling(SAMPLED)
ASSUMED = UniformSampling(SAMPLED, replace=True)
REPETITIONS = 100
# probabilities below this change no printed digit
_NEGLIGIBLE = 1e-18


@dataclass(frozen=True)
class PublishedRankEstimate(Correction):
    """Eq. 20, but with m + 1 in place of m, as the published AUC implies."""

    name = "published-rank"

    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        counts = case.N * np.arange(case.m + 1) // (case.m + 1)
        return CorrectionTable(case.count_term(term)(counts.astype(np.float64)))


def columns(*, published: bool) -> list[Metric]:
    """Return every sampled and corrected metric of Table 3, metric by metric."""
    found = [as_metric(name + text) for name in METRICS for text in ("", *TABLE_3_COLUMNS[2:])]
    if not published:
        return found
    return [
        Corrected(one.metric, PublishedRankEstimate()) if isinstance(one, Corrected) and str(one).endswith("~rank")
        else one
        for one in found
    ]  # fmt: skip


def repeat(study: Study, *, rng: int = 0) -> dict[str, Floats]:
    """Repeat the paper's experiment 100 times: draw 100 candidates per user, break ties, correct.

    Returns means over users by recommender, of shape (repetitions, metrics, columns).
    """
    generator = np.random.default_rng(rng)
    tables = published_tables(mean_n(study))
    return {
        name: np.array([_one_repetition(ranks, exact, tables, generator) for _ in range(REPETITIONS)])
        for name, ranks in study.ranks.items()
        for exact in [None if ranks.has_ties else _exact(ranks)]
    }


def mean_n(study: Study) -> int:
    """Return the n that the published corrections assume for all users."""
    return int(study.y.n_candidates.mean())


def published_tables(n: int) -> Floats:
    """Return the value at each sampled count: an array of shape (m + 1, metrics, columns without the exact one)."""
    shown = as_sampled(Ranks.from_ranks([1], n=n), ASSUMED)
    tables = [counted(metric.terms(shown)[0], shown, np.array([0]))[0] for metric in columns(published=True)]
    return np.stack(tables, axis=1).reshape(DESIGN.size + 1, len(METRICS), -1)


def _one_repetition(ranks: Ranks, exact: Floats | None, tables: Floats, generator: np.random.Generator) -> Floats:
    """Return the means of one repetition; the exact ones are given where there are no ties to break."""
    drawn = DESIGN.draw(ranks, rng=generator)
    lost: Ints = np.floor(generator.random(drawn.tied.size) * drawn.tied).astype(np.int64)
    counts = np.bincount(drawn.above + lost, minlength=DESIGN.size + 1)
    if exact is None:
        exact = _exact(ranks.break_ties("random", rng=generator))
    return np.hstack([exact, np.tensordot(counts / len(ranks), tables, axes=1)])


def _exact(ranks: Ranks) -> Floats:
    """Return the exact metrics as a column."""
    return np.array([[estimate(ranks, metric).mean] for metric in METRICS])


def expected_as_published(ranks: Ranks, tables: Floats) -> Floats:
    """Return the expectations of the published numbers, of shape (metrics, columns)."""
    return np.hstack([_exact(ranks), np.tensordot(expected_counts(ranks) / len(ranks), tables, axes=1)])


def expected_counts(ranks: Ranks) -> Floats:
    """Return how many users have each sampled count in the published sampling, on average.

    Of t sampled ties, floor(U t) are put above, which is never all of them.
    """
    items = ItemLaws(HYPERGEOMETRIC, ranks.above, SAMPLED, ranks.item_n - 1)
    total, lost = np.zeros(SAMPLED + 1), np.zeros((SAMPLED + 1, SAMPLED + 1))
    for part in items.parts():
        rows, tied = items.rows(part), ranks.tied[part]
        total += rows[tied == 0].sum(axis=0)
        item, above = np.nonzero((rows > _NEGLIGIBLE) & (tied > 0)[:, None])
        left = (items.N - items.g)[part][item]
        ties = HYPERGEOMETRIC.rows(tied[item], np.minimum(SAMPLED - above, left), left)
        # by the sampled candidates above an item and its ties, and those of its ties that are put above it
        np.add.at(lost, above, rows[item, above, None] * _lost(ties))
    return total + [np.trace(lost[::-1], offset=count - SAMPLED) for count in range(SAMPLED + 1)]


def _lost(ties: Floats) -> Floats:
    """Return the chance that so many ties are put above, from the law of the sampled ties: a row each."""
    # of t ties, 0..t - 1 are above with equal probability; this averages over t
    share = np.cumsum((ties[:, 1:] / np.arange(1, ties.shape[1]))[:, ::-1], axis=1)[:, ::-1]
    share = np.pad(share, ((0, 0), (0, SAMPLED + 1 - share.shape[1])))
    share[:, 0] += ties[:, 0]
    return share


def expected_by_default(ranks: Ranks) -> Floats:
    """Return the expectations with truerank's defaults, of shape (metrics, columns)."""
    found = risks(ranks, columns(published=False), DESIGN)
    return np.hstack([_exact(ranks), np.array([each.mean for each in found]).reshape(len(METRICS), -1)])


def table_3(study: Study, repeated: Mapping[str, Floats]) -> list[Compared]:
    """Return every cell of Table 3 in percent; sampled and corrected ones are exact expectations."""
    tables = published_tables(mean_n(study))
    ours = {name: 100 * expected_as_published(ranks, tables) for name, ranks in study.ranks.items()}
    own_n = {name: 100 * expected_by_default(ranks) for name, ranks in study.ranks.items()}
    seeds = np.array([ours["X"], *(100 * expected_as_published(ranks, tables) for ranks in study.x[1:])])
    return [
        Compared(
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
    """Return the error of a printed number; an exact metric is printed for one order of the ties."""
    # exactly 0 where nothing ties
    ours = float((repeated - repeated[0]).std())
    _, _, published = printed.partition("±")
    if not published:
        return {"standard_error": ours}
    error = float(published) / REPETITIONS**0.5
    return {"standard_error": error, "published_deviation": float(published), "deviation": ours}


def table_4(study: Study, repeated: Mapping[str, Floats]) -> list[Compared]:
    """Return every cell of Table 4: in how many repetitions a pair of recommenders is in its exact order."""
    exact = {name: [estimate(ranks, metric).mean for metric in METRICS] for name, ranks in study.ranks.items()}
    cells = []
    for (metric, a, b), counts in TABLE_4.items():
        at = METRICS.index(metric)
        sign = np.sign(exact[a][at] - exact[b][at])
        right = (np.sign(repeated[a][:, at] - repeated[b][:, at]) == sign).sum(axis=0)
        for column, published, ours in zip(TABLE_3_COLUMNS[1:], counts, right[1:].tolist(), strict=True):
            share = (published + ours) / 2 / REPETITIONS
            # standard error of the difference of two binomial counts
            error = (2 * REPETITIONS * share * (1 - share)) ** 0.5
            cells.append(Compared(4, f"{metric} {a} vs {b}", column, str(published), ours, error))
    return cells
