"""The experiment on MovieLens: Tables 3 and 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

import numpy as np

import truerank as tr
from truerank.core.checks import Bools, Floats, Ints
from truerank.core.threads import progress_bar
from truerank.estimators.corrected import as_sampled, counted
from truerank.evaluation.intervals import mean_of
from truerank.papers.krichene_rendle_2020.toy_tables import TABLE_3, TABLE_3_COLUMNS, TABLE_4, ComparedCell
from truerank.sampling.expectations import ItemLaws, pooled_laws, pooled_tied_laws
from truerank.sampling.laws import HYPERGEOMETRIC

SHAPE = (6_040, 3_706)
"""Users and items of MovieLens 1M."""
SAMPLED = 100
"""Sampled candidates."""
X = [tr.IALS(factors=16, alpha=0.2, regularization=10.0, sweeps=4, init_scale=0.1, rng=seed) for seed in range(10)]
"""The paper states neither the seed nor the number of sweeps."""
Y = tr.ItemKNN(power=3.0, keep_self=True)
Z = tr.ItemKNN(power=1.0, neighbours=10, keep="column")


@dataclass(frozen=True, eq=False)
class Study:
    """Exact ranks of the three recommenders; X has one for each seed."""

    x: tuple[tr.Ranks, ...]
    y: tr.Ranks
    z: tr.Ranks

    @property
    def ranks(self) -> dict[str, tr.Ranks]:
        """The ranks of each recommender, X with the first seed."""
        return {"X": self.x[0], "Y": self.y, "Z": self.z}

    def save(self, path: str | Path) -> None:
        """Write the file that `load` reads; the wheel compresses it."""
        if any(ranks.has_ties for ranks in self.x):
            raise tr.InputError("the ranks of X must not have ties, which the file can't store.")
        x = np.stack([ranks.above for ranks in self.x])
        others = [column for ranks in (self.y, self.z) for column in (ranks.above, _untied(ranks))]
        columns = np.stack([self.y.n_candidates, *others, *_surprises(x)])
        in_bytes = np.stack(np.divmod(columns, 256)).astype(np.uint8)  # those of one kind together take less space
        np.savez(path, made_by=[repr(recommender) for recommender in (*X, Y, Z)], ranks=in_bytes)

    @classmethod
    def load(cls, path: Traversable) -> Self:
        """Read a file of `save`; `made_by` in it names the recommenders."""
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            high, low = arrays["ranks"].astype(np.int64)
        n, y, y_untied, z, z_untied, *surprises = 256 * high + low
        x = tuple(tr.Ranks(above=above, n_candidates=n) for above in _expected(surprises))
        return cls(x, _with_ties(y, y_untied, n), _with_ties(z, z_untied, n))


def _untied(ranks: tr.Ranks) -> Ints:
    """Return how many candidates neither tie with an item nor are above it, itself included, or 0 without ties.

    Most ties are those of items without a score, which reach the end of the catalogue.
    """
    return np.where(ranks.tied > 0, ranks.n_candidates - ranks.above - ranks.tied, 0)


def _with_ties(above: Ints, untied: Ints, n: Ints) -> tr.Ranks:
    return tr.Ranks(above=above, tied=np.where(untied > 0, n - above - untied, 0), n_candidates=n)


def _surprises(x: Ints) -> Ints:
    """Return how far each row is from the mean of those before it, where 0, -1, 1, -2, ... become 0, 1, 2, 3, ..."""
    steps = x.copy()
    steps[1:] -= x.cumsum(axis=0)[:-1] // np.arange(1, len(x))[:, None]
    return np.where(steps < 0, -2 * steps - 1, 2 * steps)


def _expected(surprises: Sequence[Ints]) -> list[Ints]:
    """Return the rows that have these `_surprises`."""
    rows: list[Ints] = []
    for surprise in surprises:
        step = np.where(surprise % 2, -surprise // 2, surprise // 2)
        rows.append(np.asarray(sum(rows) // max(len(rows), 1) + step))
    return rows


@cache
def embedded() -> Study:
    """Return the ranks that come with the package."""
    return Study.load(files(__package__) / "ranks.npz")


def from_split(split: tr.Split) -> Study:
    """Train X, Y and Z and rank each user's held-out items."""
    progress = progress_bar("recommenders", True, [*X, Y, Z])
    found: list[tr.Ranks] = [tr.rank(recommender.fit(split.train), split) for recommender in progress]
    *x, y, z = found
    if (y.n_relevant != 1).any() or y.n_candidates.min() <= SAMPLED:
        raise tr.InputError(f"each user must have one held-out item and more than {SAMPLED} candidates.")
    return Study(tuple(x), y, z)


def load_split(source: str | Path) -> tr.Split:
    """Read an existing split, or hold out each user's last event; every rating counts as an event."""
    path = Path(source)
    if path.is_dir() and any("train" in file.name.split(".") for file in path.iterdir()):
        return tr.read_split(path)
    return tr.leave_last_out(tr.read_interactions(path))


METRICS = ("recall@10", "ndcg@10", "ap", "auc")
DESIGN = tr.UniformSampling(SAMPLED)
ASSUMED = tr.UniformSampling(SAMPLED, replace=True)
REPETITIONS = 100
# probabilities below this change no printed digit
_NEGLIGIBLE = 1e-18


@dataclass(frozen=True)
class PublishedRankEstimate(tr.estimators.Correction):
    """Eq. 20, but with m + 1 in place of m, as the published AUC implies."""

    name = "published-rank"

    def solve(
        self, term: tr.metrics.Term, law: tr.estimators.Law, case: tr.estimators.Case
    ) -> tr.estimators.CorrectionTable:
        counts = case.N * np.arange(case.m + 1) // (case.m + 1)
        return tr.estimators.CorrectionTable(case.count_term(term)(counts.astype(np.float64)))


def columns(*, published: bool) -> list[tr.Metric]:
    """Return every sampled and corrected metric of Table 3, metric by metric."""

    def metric(name: str, text: str) -> tr.Metric:
        if published and text == "~rank":
            return tr.estimators.Corrected(tr.metric(name), PublishedRankEstimate())
        return tr.metric(name + text)

    return [metric(name, text) for name in METRICS for text in ("", *TABLE_3_COLUMNS[2:])]


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
    shown = as_sampled(tr.Ranks.from_ranks([1], n=n), ASSUMED)
    tables = [counted(metric.terms(shown)[0], shown, np.array([0]))[0] for metric in columns(published=True)]
    return np.stack(tables, axis=1).reshape(DESIGN.size + 1, len(METRICS), -1)


def _one_repetition(ranks: tr.Ranks, exact: Floats | None, tables: Floats, generator: np.random.Generator) -> Floats:
    """Return the means of one repetition; the exact ones are given where there are no ties to break."""
    drawn = DESIGN.draw(ranks, rng=generator)
    lost: Ints = np.floor(generator.random(drawn.tied.size) * drawn.tied).astype(np.int64)
    counts = np.bincount(drawn.above + lost, minlength=DESIGN.size + 1)
    if exact is None:
        exact = _exact(ranks.break_ties("random", rng=generator))
    return np.hstack([exact, np.tensordot(counts / len(ranks), tables, axes=1)])


def _exact(ranks: tr.Ranks) -> Floats:
    """Return the exact metrics as a column."""
    return np.array([[mean_of(tr.values(ranks, metric))] for metric in METRICS])


def expected_as_published(ranks: tr.Ranks, tables: Floats) -> Floats:
    """Return the expectations of the published numbers, of shape (metrics, columns)."""
    return np.hstack([_exact(ranks), np.tensordot(expected_counts(ranks) / len(ranks), tables, axes=1)])


def expected_counts(ranks: tr.Ranks) -> Floats:
    """Return how many users have each sampled count in the published sampling, on average.

    Of t sampled ties, floor(U t) are put above, which is never all of them.
    """
    N = ranks.item_n - 1
    free, last = ranks.tied == 0, (ranks.tied > 0) & (ranks.above + ranks.tied == N)
    # where an item ties with all that are not above it, the rest of a sample are ties
    lost = _pooled(ranks, last).sum(axis=0)[:, None] * _lost(np.eye(SAMPLED + 1)[::-1])
    between = ~(free | last)
    items = ItemLaws(HYPERGEOMETRIC, ranks.above[between], SAMPLED, N[between])
    for part in items.parts():
        rows = items.rows(part)
        item, above = np.nonzero(rows > _NEGLIGIBLE)
        left = (items.N - items.g)[part][item]
        ties = HYPERGEOMETRIC.rows(ranks.tied[between][part][item], np.minimum(SAMPLED - above, left), left)
        # by the sampled candidates above an item and its ties, and those of its ties that are put above it
        np.add.at(lost, above, rows[item, above, None] * _lost(ties))
    return _pooled(ranks, free).sum(axis=0) + [
        np.trace(lost[::-1], offset=count - SAMPLED) for count in range(SAMPLED + 1)
    ]


def _pooled(ranks: tr.Ranks, some: Bools, *, tied: bool = False) -> Floats:
    """Return how many of some users have each sampled count on average, a row for each number of candidates.

    Candidates that tie do not count, or if they are `tied` count in random order.
    """
    sizes, group = np.unique(ranks.item_n, return_inverse=True)
    above, N = ranks.above[some], ranks.item_n[some] - 1
    own: dict[str, Any] = {"weight": np.ones(N.size), "group": group[some], "n_groups": sizes.size}
    if tied:
        return pooled_tied_laws(above, ranks.tied[some], SAMPLED, N, **own)
    return pooled_laws(HYPERGEOMETRIC, above.astype(np.float64), SAMPLED, N, **own)


def _lost(ties: Floats) -> Floats:
    """Return the chance that this many ties are put above, from the law of the sampled ties: a row each."""
    # of t ties, 0..t - 1 are above with equal probability; this averages over t
    share = np.cumsum((ties[:, 1:] / np.arange(1, ties.shape[1]))[:, ::-1], axis=1)[:, ::-1]
    share = np.pad(share, ((0, 0), (0, SAMPLED + 1 - share.shape[1])))
    share[:, 0] += ties[:, 0]
    return share


def expected_by_default(ranks: tr.Ranks) -> Floats:
    """Return the expectations with truerank's defaults, of shape (metrics, columns)."""
    shown, (_, first) = as_sampled(ranks, DESIGN), np.unique(ranks.item_n, return_index=True)
    counts = _pooled(ranks, ranks.tied == 0) + _pooled(ranks, ranks.tied > 0, tied=True)
    tables = [counted(metric.terms(shown)[0], shown, first) for metric in columns(published=False)]
    means = np.array([np.sum(counts * table) / len(ranks) for table in tables])
    return np.hstack([_exact(ranks), means.reshape(len(METRICS), -1)])


def table_3(study: Study, repeated: Mapping[str, Floats]) -> list[ComparedCell]:
    """Return every cell of Table 3 in percent; sampled and corrected ones are exact expectations."""
    tables = published_tables(mean_n(study))
    ours = {name: 100 * expected_as_published(ranks, tables) for name, ranks in study.ranks.items()}
    own_n = {name: 100 * expected_by_default(ranks) for name, ranks in study.ranks.items()}
    seeds = np.array([ours["X"], *(100 * expected_as_published(ranks, tables) for ranks in study.x[1:])])
    return [
        ComparedCell(
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


def table_4(study: Study, repeated: Mapping[str, Floats]) -> list[ComparedCell]:
    """Return every cell of Table 4: in how many repetitions a pair of recommenders is in its exact order."""
    exact = {name: [tr.estimate(ranks, metric).mean for metric in METRICS] for name, ranks in study.ranks.items()}
    cells = []
    for (metric, a, b), counts in TABLE_4.items():
        at = METRICS.index(metric)
        sign = np.sign(exact[a][at] - exact[b][at])
        right = (np.sign(repeated[a][:, at] - repeated[b][:, at]) == sign).sum(axis=0)
        for column, published, ours in zip(TABLE_3_COLUMNS[1:], counts, right[1:].tolist(), strict=True):
            share = (published + ours) / 2 / REPETITIONS
            # standard error of the difference of two binomial counts
            error = (2 * REPETITIONS * share * (1 - share)) ** 0.5
            cells.append(ComparedCell(4, f"{metric} {a} vs {b}", column, str(published), ours, error))
    return cells
