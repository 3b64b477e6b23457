"""Section 6: three recommenders on MovieLens 1M, sampled with m = 100 and corrected (Tables 3 and 4).

The published cells come from 100 repetitions. In each, ties are broken anew, 100 of the user's own irrelevant
candidates are drawn without replacement, and the corrections suppose one n, the mean, and sampling with
replacement ("as published"). Beside that stands what truerank does by default: each user's own n and the law of
the sampling that was done. Expectations are exact, so that only the published numbers carry Monte-Carlo error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from truerank import render
from truerank.arrays import Floats, Ints
from truerank.corrections.corrected import Cell, Corrected
from truerank.estimates import estimate
from truerank.names import metric as as_metric
from truerank.papers.krichene_rendle_2020.published import TABLE_3, TABLE_3_COLUMNS, TABLE_4
from truerank.ranks import Ranks
from truerank.risk import sampled_tables
from truerank.sampling import laws
from truerank.sampling.designs import SamplingDesign

METRICS = ("recall@10", "ndcg@10", "ap", "auc")
DESIGN = SamplingDesign(100)
SUPPOSED = SamplingDesign(100, replace=True)
REPETITIONS = 100


@dataclass(frozen=True)
class Cell3:
    """A cell of Table 3 in percent: published mean and deviation, and ours in both modes."""

    metric: str
    recommender: str
    column: str
    published: float
    published_deviation: float
    as_published: float
    own_n: float

    @property
    def agrees(self) -> bool:
        """Within three standard errors of the published mean, plus its rounding."""
        return abs(self.as_published - self.published) <= 3 * self.published_deviation / REPETITIONS**0.5 + 0.005


@dataclass(frozen=True)
class Cell4:
    """A cell of Table 4: in how many of 100 repetitions a pair was in the exact order."""

    metric: str
    pair: tuple[str, str]
    column: str
    published: int
    as_published: int

    @property
    def agrees(self) -> bool:
        """Within three binomial standard errors of the difference of two such counts, and rounding."""
        share = (self.published + self.as_published) / 2 / REPETITIONS
        return abs(self.as_published - self.published) <= 3 * (2 * REPETITIONS * share * (1 - share)) ** 0.5 + 1


@cache
def embedded_ranks() -> dict[str, Ranks]:
    """Return the ranks of X, Y and Z, shipped with the package; `made_by` in the file says how they were made."""
    with (files(__package__) / "ranks.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        known = dict(arrays)
    return {
        name: Ranks(above=known[f"{name}_above"], tied=known[f"{name}_tied"], n_candidates=known["n_candidates"])
        for name in ("X", "Y", "Z")
    }


def table_3(ranks: Mapping[str, Ranks]) -> list[Cell3]:
    """Return every cell of Table 3 by its exact expectation."""
    texts = _texts()
    both = {
        size: np.hstack([table, own])
        for (size, table), own in zip(
            _tables(ranks, own_n=False).items(), _tables(ranks, own_n=True).values(), strict=True
        )
    }
    expected = _expectations(ranks, both)
    cells = []
    for name, places in ranks.items():
        as_published, own_n = np.split(100 * expected[name], 2)
        for metric in METRICS:
            exact = 100 * estimate(places, metric).mean
            at = [texts.index(metric + column) for column in _corrections()]
            ours = [(exact, exact), *zip(as_published[at].tolist(), own_n[at].tolist(), strict=True)]
            for column, text, pair in zip(TABLE_3_COLUMNS, TABLE_3[metric, name].split(), ours, strict=True):
                mean, _, deviation = text.partition("±")
                cells.append(Cell3(metric, name, column, float(mean), float(deviation or 0), *pair))
    return cells


def table_4(ranks: Mapping[str, Ranks], *, rng: int = 0) -> list[Cell4]:
    """Return every cell of Table 4, counted in 100 repetitions of our own."""
    texts, tables = _texts(), _tables(ranks, own_n=False)
    generator = np.random.default_rng(rng)
    means = {name: _repeat(places, tables, generator) for name, places in ranks.items()}
    exact = {(name, metric): estimate(ranks[name], metric).mean for name in ranks for metric in METRICS}
    cells = []
    for (metric, a, b), published in TABLE_4.items():
        for column, count in zip(TABLE_3_COLUMNS[1:], published, strict=True):
            at = texts.index(metric + ("" if column == "sampled" else column))
            sign = np.sign(exact[a, metric] - exact[b, metric])
            right = int((np.sign(means[a][:, at] - means[b][:, at]) == sign).sum())
            cells.append(Cell4(metric, (a, b), column, count, right))
    return cells


def _corrections() -> list[str]:
    return ["", *TABLE_3_COLUMNS[2:]]


def _texts() -> list[str]:
    return [metric + correction for metric in METRICS for correction in _corrections()]


def _tables(ranks: Mapping[str, Ranks], *, own_n: bool) -> dict[int, Floats]:
    """By number of candidates, what each count h adds to each metric: an array of shape (m + 1, texts)."""
    n = next(iter(ranks.values())).n_candidates
    sizes = [int(size) for size in np.unique(n)]
    columns = []
    for text in _texts():
        metric = as_metric(text)
        if own_n or not isinstance(metric, Corrected):
            columns.append(sampled_tables(metric, DESIGN, [Cell(1, 1, size) for size in sizes]))
        else:
            one = sampled_tables(metric, SUPPOSED, [Cell(1, 1, int(n.mean()))])
            columns.append(np.repeat(one, len(sizes), axis=0))
    stacked = np.stack(columns, axis=2)
    return dict(zip(sizes, stacked, strict=True))


def _expectations(ranks: Mapping[str, Ranks], tables: Mapping[int, Floats]) -> dict[str, Floats]:
    """Mean over users of the expected sampled value of each column, ties in random order."""
    width = next(iter(tables.values())).shape[1]
    totals = {name: np.zeros(width) for name in ranks}
    for size, table in tables.items():
        # expectation at every count, then the mean over the counts that ties make equally likely
        law = laws.rows(np.arange(size), DESIGN.m, size - 1, replace=DESIGN.replace)
        sums = np.concatenate([np.zeros((1, width)), np.cumsum(law @ table, axis=0)])
        for name, places in ranks.items():
            mine = places.n_candidates == size
            first, last = places.above[mine], places.above[mine] + places.tied[mine] + 1
            totals[name] += ((sums[last] - sums[first]) / (last - first)[:, None]).sum(axis=0)
    return {name: total / len(ranks[name]) for name, total in totals.items()}


def _repeat(ranks: Ranks, tables: Mapping[int, Floats], generator: np.random.Generator) -> Floats:
    """Mean over users of each column, in each repetition."""
    sizes = np.array(list(tables))
    stacked = np.stack(list(tables.values()))
    which: Ints = np.searchsorted(sizes, ranks.n_candidates)
    means = []
    for _ in range(REPETITIONS):
        sampled = DESIGN.draw(ranks.break_ties("random", rng=generator), rng=generator)
        means.append(stacked[which, sampled.above].mean(axis=0))
    return np.array(means)


def show(ranks: Mapping[str, Ranks]) -> str:
    """Return Tables 3 and 4, published and ours."""
    third = [
        [
            cell.metric,
            cell.recommender,
            cell.column,
            f"{cell.published:.2f}",
            f"{cell.as_published:.2f}",
            f"{cell.as_published - cell.published:+.2f}",
            "yes" if cell.agrees else "no",
            f"{cell.own_n:.2f}",
        ]
        for cell in table_3(ranks)
    ]
    fourth = [
        [
            cell.metric,
            " vs ".join(cell.pair),
            cell.column,
            str(cell.published),
            str(cell.as_published),
            "yes" if cell.agrees else "no",
        ]
        for cell in table_4(ranks)
    ]
    return "\n".join(
        [
            "Table 3: MovieLens 1M, m = 100, in percent; ours are exact expectations",
            render.text(["metric", "", "column", "published", "ours", "difference", "within 3 s.e.", "own n"], third),
            "",
            "Table 4: in how many of 100 repetitions the sampled order is the exact one",
            render.text(["metric", "pair", "column", "published", "ours", "within 3 s.e."], fourth),
        ]
    )
