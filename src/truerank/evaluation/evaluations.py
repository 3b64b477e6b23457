"""`evaluate`: a table of metrics with intervals, for several recommenders, metrics and groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from truerank.core.checks import AnyArray, Floats, InputError, Rng, by_name
from truerank.core.ranks import Ranks, check_ranks
from truerank.core.tables import Cell, Table, Tabular
from truerank.core.threads import progress_bar
from truerank.estimators.corrected import AnyMetric, Assumption, as_metrics, check_assumption, recommended
from truerank.evaluation import per_instance
from truerank.evaluation.estimates import (
    Estimate,
    WholeEstimate,
    chance_notes,
    only_bounds,
    summary,
    whole_estimate,
)
from truerank.evaluation.groups import Groups
from truerank.evaluation.intervals import engine_of
from truerank.evaluation.per_instance import Part, Ties, values_by_part
from truerank.metrics.definitions import MeanRank, Metric, WholeMetric

if TYPE_CHECKING:
    from truerank.core.conventions import Convention, Definition, Weights
    from truerank.data.interactions import PerUser
    from truerank.evaluation.comparisons import Comparison
    from truerank.evaluation.exact_ranges import BoundValues, ExactRange
    from truerank.evaluation.propensities import Propensity
    from truerank.formats.sources import Source
    from truerank.recommending.list_metrics import ListMetric
    from truerank.recommending.recommendations import Recommendations

    Evaluable = Ranks | Recommendations
    """Anything that has metrics: ranks of relevant items, or recommended lists."""


def evaluate(
    ranks: Evaluable | Mapping[str, Evaluable],
    metrics: AnyMetric | ListMetric | Iterable[AnyMetric | ListMetric],
    *,
    train: PerUser | None = None,
    truth: Source = None,
    item_vectors: AnyArray | None = None,
    by: Groups | Mapping[Any, Any] | Any | None = None,
    propensity: Propensity | Mapping[Any, float] | Any | None = None,
    ties: Ties = "expected",
    rng: Rng = None,
    assume: Assumption = "nothing",
    convention: str | None = None,
    progress: bool = False,
) -> Evaluation:
    """Return a table of metrics for one recommender or several.

    Parameters
    ----------
    ranks : Ranks, Recommendations or Spark dataframe of ranks, or dict of name to one of them
        One recommender, or several by name.
    metrics : list of str, Metric or function (or one of them)
        For instance ``["ndcg@10", "recall@10", "auc"]``. Under inverse sampling a metric without an estimator gets
        the recommended one, which the table names: ``~unbiased`` where there is one, else ``~smooth`` or ``~monotone``.
        Lists also have metrics of their own, such as ``["coverage@10", "novelty@10"]``.
    train : Interactions, sparse matrix, or list of item numbers per user, optional
        For lists: the training interactions, where a metric depends on the popularity of items or on how many there
        are. Its items belong to the catalogue.
    truth : Interactions, or what `read_lists` accepts, optional
        For lists: the relevant items, where a metric compares lists with them.
    item_vectors : array of shape (n_items, d), optional
        For lists: a vector per item, where a metric compares items.
    by : dict, dataframe or Groups, optional
        Groups to show separately: from the id of an instance to the name of its group, or from `truerank.by_activity`,
        `truerank.by_popularity` or `truerank.by_column`. Ids without a group are the group "unknown". Lists have groups
        of users only.
    propensity : Propensity, dict or dataframe, optional
        Probability that each relevant item was logged, such as `truerank.popularity_propensity`; or a mapping from item
        to propensity. What an item adds is divided by it, and so is its part in the weight of its instance. Errors
        allow for the weights, and a note gives the effective sample size. Metrics that depend on which other items are
        relevant (AP, RR) are refused if there are several; docs/biased-logs.md says why, and what weights can't fix.
    ties : {"expected", "optimistic", "pessimistic", "random"}
        See `truerank.values`.
    rng : int or numpy.random.Generator, optional
        Seed for ``ties="random"``: one order of the ties of a recommender serves all metrics.
    assume : {"nothing", "falling", "smooth"}
        What the intervals of corrected metrics may assume about the exact ranks, among the top tenth of the candidates
        and for the first relevant item of an instance: nothing; that a deeper rank is never more likely; or, in
        addition, that a rank twice as deep is at least a quarter as likely.
    convention : {"trec_eval", "ir-measures", "ranx", "rectools", "implicit", "lenskit", "recbole", "cornac", \
                  "scikit-learn", "ogb", "ogb-pool", "tgb", "pykeen"}, optional
        Gives the numbers that this tool would print, to match published ones; docs/conventions.md lists what differs.
    progress : bool
        Whether to show a progress bar, on a terminal only, when it takes more than a second.

    Examples
    --------
    >>> import truerank as tr
    >>> table = tr.evaluate(
    ...     {"A": tr.Ranks.from_ranks([100] * 5, n=10_000),
    ...      "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000)},
    ...     ["auc", "ap"],
    ... )
    >>> print(table)
                   auc               ap  instances  tied
    A  0.9901 ± 0.0000  0.0100 ± 0.0000          5  0.0%
    C  0.8431 ± 0.0980  0.1014 ± 0.0997          5  0.0%
    note: only 5 instances: expect a wide interval
    >>> round(table["C", "ap"].mean, 3)
    0.101
    """
    given = dict(ranks) if isinstance(ranks, Mapping) else {"recommender": ranks}
    for name, value in (("by", by), ("propensity", propensity)):
        if value is not None and convention is not None:
            raise InputError(f"give either `{name}` or `convention`, not both.")
    for_lists = {"train": train, "truth": truth, "item_vectors": item_vectors}
    if any(map(_is_lists, given.values())):
        if propensity is not None:
            raise InputError("`propensity` is for ranks, but these are recommended lists.")
        of_ranks = partial(evaluate, ties=ties, rng=rng, assume=assume, convention=convention, progress=progress)
        return _evaluate_lists(given, metrics, of_ranks, by=by, **for_lists)
    for name, value in for_lists.items():
        if value is not None:
            raise InputError(f"`{name}` is for recommended lists, but these are ranks.")
    named, chosen = cast("dict[str, Ranks]", given), as_metrics(cast("AnyMetric", metrics))
    if not named or not chosen:
        raise InputError("evaluate needs at least one recommender and one metric.")
    check_assumption(assume)
    seen = None if propensity is None else _as_propensity(propensity)
    step = partial(cells_of, metrics=chosen, ties=ties, assume=assume, propensity=seen)
    if (engine := engine_of(named)) is not None:
        cells, shown = engine.evaluated(named, chosen, step, by=by, rng=rng, convention=convention, ties=ties)
        return _table(tuple(named), chosen, cells, shown, ties, dict.fromkeys(named, ()))
    check_ranks(*named.values())
    if convention is not None:
        return _by_convention(named, chosen, convention, ties, rng)
    groups, seed = None if by is None else Groups.of(by), per_instance.tie_seed(ties, rng)
    cells = step(named, groups, seed, progress=progress)
    shown = () if groups is None else tuple(dict.fromkeys(group for _, group, _ in cells))
    unused = () if groups is None else groups.notes(*map(groups.ids_in, named.values()))
    notes = {name: [*one.notes, *unused] for name, one in named.items()}
    if not shown and seen is None:
        for name, one in named.items():
            taken = [recommended(metric, one) for metric in chosen]
            notes[name] += chance_notes(one, taken, [cells[name, "", at] for at in range(len(chosen))])

    compared = [metric for metric in chosen if not metric.of_all_instances]

    def contest() -> Comparison:
        from truerank.evaluation.comparisons import compare  # imports all corrections, as do the bounds below

        return compare(per_instance.untied(named, ties, seed), compared, by=groups, propensity=seen, assume=assume)

    return _table(tuple(named), chosen, cells, shown, ties, notes, contest if compared else None)


Cells = dict[tuple[str, str, int], Estimate]
"""Estimates by recommender, group and the place of the metric."""


def cells_of(
    ranks: Mapping[str, Ranks],
    groups: Groups | None,
    rng: Rng,
    *,
    metrics: Sequence[Metric],
    ties: Ties,
    assume: Assumption,
    propensity: Propensity | None = None,
    progress: bool = False,
) -> Cells:
    """Return the estimates of some instances."""
    broken = per_instance.untied(ranks, ties, rng)
    parts = per_instance.parts_by(broken, groups, propensity)
    taken = [(name, at, recommended(each, one)) for name, one in broken.items() for at, each in enumerate(metrics)]
    for name, _, metric in taken if propensity is not None else ():
        _check_weighted(metric, broken[name])
    means = [each for each in taken if not each[2].of_all_instances]
    work = [(name, at, metric, per_instance.checked_terms(broken[name], metric)) for name, at, metric in means]
    cells: Cells = {
        (name, part.name, at): _whole(broken[name], ranks[name], metric, part, ties)
        for name, at, metric in taken
        if isinstance(metric, WholeMetric)
        for part in parts[name]
    }
    bounds: dict[tuple[str, str], BoundValues] = {}  # shared by the corrections of one metric

    def exact_range(name: str, metric: Metric, part: Part) -> ExactRange | None:
        """Return what is known about the exact metric; nothing for a part of the items of instances."""
        one, key = broken[name], (name, str(metric.estimated))
        if part.items is not None or not only_bounds(one, metric):
            return None
        from truerank.evaluation.exact_ranges import ExactRange, bound_values

        if key not in bounds:
            bounds[key] = bound_values(one, metric.estimated, assume)
        return ExactRange.of(bounds[key].take(part.rows), None if one.clusters is None else one.clusters[part.rows])

    with progress_bar("metrics", progress, work, delay=1.0) as bar:
        for name, at, metric, terms in bar:
            for found, part in zip(values_by_part(broken[name], terms, parts[name]), parts[name], strict=True):
                own = ranks[name][part.rows] if part.name or part.inverse is not None else ranks[name]
                known, items = exact_range(name, metric, part), None if part.items is None else part
                cells[name, part.name, at] = summary(found, own, metric, ties, known, part=items)
    return cells


def _whole(broken: Ranks, ranks: Ranks, metric: WholeMetric, part: Part, ties: Ties) -> Estimate:
    """Return the estimate of a metric of all instances together, for those of a group."""
    if part.items is not None:
        raise InputError(f"{metric} is a metric of all instances together, which groups of items do not have.")
    return whole_estimate(*((broken[part.rows], ranks[part.rows]) if part.name else (broken, ranks)), metric, ties)


def _as_propensity(given: Any) -> Propensity:
    from truerank.evaluation.propensities import Propensity  # most evaluations don't need it

    return Propensity.of(given)


def _check_weighted(metric: Metric, ranks: Ranks) -> None:
    from truerank.evaluation.propensities import check_weighted

    check_weighted(metric, ranks)


def _table(
    names: tuple[str, ...],
    metrics: Sequence[Metric | ListMetric],
    cells: Cells,
    groups: tuple[str, ...],
    ties: Ties,
    notes: Mapping[str, Sequence[str]],
    contest: Callable[[], Comparison] | None = None,
) -> Evaluation:
    """Return the table of all estimates, including groups that a recommender does not have."""
    columns = [_column(cells, at, metric) for at, metric in enumerate(metrics)]
    nothing = [Estimate(name, math.nan, math.nan, 0, ties=ties) for name in columns]
    rows = {
        name: [cells.get((name, group, at), nothing[at]) for group in groups or ("",) for at in range(len(columns))]
        for name in names
    }
    estimates = tuple(cell for row in rows.values() for cell in row)
    noted = by_name({name: [*own, *_cell_notes(rows[name], groups)] for name, own in notes.items()})
    signs = tuple(map(_direction, metrics))
    return Evaluation(names, tuple(columns), estimates, noted, groups, signs, contest)


def _direction(metric: Metric | ListMetric) -> int:
    """Return whether high values (1) or low ones (-1) are good, or neither (0), as for metrics that describe lists."""
    if not isinstance(metric, Metric):
        return 0
    return -1 if metric.estimated.lower_is_better else 1


def _column(cells: Cells, place: int, metric: Metric | ListMetric) -> str:
    """Return the name of a column: with the estimator, unless recommenders differ in it."""
    names = {cell.metric for (_, _, at), cell in cells.items() if at == place}
    return names.pop() if len(names) == 1 else str(metric)


def _evaluate_lists(given: Mapping[str, Any], metrics: Any, evaluate_ranks: Any, **others: Any) -> Evaluation:
    """Return a table of metrics of lists, and of the ranks of relevant items in them."""
    from truerank.evaluation.list_evaluations import list_cells, list_notes

    if not all(map(_is_lists, given.values())):
        raise InputError("lists and ranks can't be in one table.")
    found = list_cells(given, metrics, evaluate_ranks, **others)
    names = tuple(given)
    table = _table(names, found.metrics, found.cells, found.groups, "expected", list_notes(given, others["train"]))
    notes = tuple(dict.fromkeys((*table.notes, *found.notes)))
    return replace(table, notes=notes, contest=found.contest)


def _is_lists(given: Any) -> bool:
    if isinstance(given, Ranks):
        return False
    from truerank.recommending.recommendations import Recommendations

    return isinstance(given, Recommendations)


def _by_convention(named: Mapping[str, Ranks], chosen: Sequence[Metric], name: str, ties: Ties, rng: Rng) -> Evaluation:
    """Return the numbers that a tool would print, under the requested names."""
    from truerank.core.conventions import find_convention

    tool = find_convention(name)
    if not tool.samples and any(one.design is not None for one in named.values()):
        raise InputError(f"{tool.name} ranks all candidates, but these ranks are among sampled ones.")
    cells: Cells = {}
    for key, one in named.items():
        cells |= {(key, "", at): _estimate(tool, one, metric, ties, rng) for at, metric in enumerate(chosen)}
    return _table(tuple(named), chosen, cells, (), ties, {key: one.notes for key, one in named.items()})


def _estimate(tool: Convention, ranks: Ranks, asked: Metric, ties: Ties, rng: Rng) -> Estimate:
    definition = tool.definition(str(asked))
    metric = _within_lists(as_metrics(definition.text)[0], ranks)
    if isinstance(metric, WholeMetric):
        result: Estimate = _whole_by_convention(tool, ranks, metric, ties, rng)
        return replace(result, metric=str(asked), caveats=tuple(_caveats(tool, definition, asked, ranks)))
    weights = _weights(definition.weights, metric, ranks)
    if definition.ties == "mean rank":
        policy, found = ties, _at_mean_rank(tool, ranks, metric, ties, rng)
    else:
        policy = definition.ties or ties
        found = per_instance.values(ranks, metric, ties=policy, rng=rng)
    found = np.where(ranks.n_relevant == 0, tool.without_relevant, found)
    result = summary(found if weights is None else found * weights, ranks, metric, policy, weights=weights)
    return replace(result, metric=str(asked), caveats=(*_caveats(tool, definition, asked, ranks), *result.caveats))


def _whole_by_convention(tool: Convention, ranks: Ranks, metric: WholeMetric, ties: Ties, rng: Rng) -> Estimate:
    """Return a metric of all instances together, at the mean of the best and the worst rank where items tie."""
    metric.check(ranks)
    at = _at_mean_rank(tool, ranks, MeanRank(), ties, rng)
    base = metric.base(ranks, at)
    found = summary(_at_mean_rank(tool, ranks, base, ties, rng), ranks, base, ties)
    return WholeEstimate.of(metric, found, metric.link(ranks, at))


def _at_mean_rank(tool: Convention, ranks: Ranks, metric: Metric, ties: Ties, rng: Rng) -> Floats:
    """Return the metric at the mean of the best and the worst rank, or by another tie policy than the default."""
    if np.any(ranks.n_relevant > 1):
        at = int(np.argmax(ranks.n_relevant > 1))
        raise InputError(f"{tool.name} has one relevant item per instance, but instance {at} has several.")
    if ties != "expected":
        return per_instance.values(ranks, metric, ties=ties, rng=rng)
    return per_instance.values_at_mean_rank(ranks, metric)


def _within_lists(metric: Metric, ranks: Ranks) -> Metric:
    """Return a metric without a cut-off as one of the listed items, if lists were cut."""
    if ranks.depth is None or getattr(metric, "k", 0) is not None:
        return metric
    if (most := ranks.n_relevant.max(initial=0)) > ranks.depth:
        needed = f"lists at least as long as the largest number of relevant items, {most}"
        raise InputError(f"{metric} needs {needed}; these are cut at depth {ranks.depth}.")
    return replace(metric, k=ranks.depth)  # type: ignore[type-var]


def _weights(kind: Weights | None, metric: Metric, ranks: Ranks) -> Floats | None:
    """Return what each instance weighs in a pooled mean; None if all weigh the same."""
    if kind is None:
        return None
    if kind == "achievable":
        return np.minimum(ranks.n_relevant, metric.k).astype(np.float64)  # type: ignore[attr-defined]
    return (ranks.n_relevant if kind == "relevant" else ranks.draws).astype(np.float64)


_ORDERS = {"listed": "as they are listed", "id": "by id", "arbitrary": "arbitrarily"}


def _caveats(tool: Convention, definition: Definition, asked: Metric, ranks: Ranks) -> list[str]:
    pooled = f", weighted by {definition.weights} items" if definition.weights else ""
    mean = ", at the mean of the best and the worst rank" if definition.ties == "mean rank" and ranks.has_ties else ""
    notes = [f"{asked} as in {tool.name}: {definition.text}{pooled}{mean}"]
    if ranks.has_ties and definition.ties is None and tool.equal_scores in _ORDERS:
        between = "its numbers lie between those for 'optimistic' and 'pessimistic' ties"
        notes.append(f"{tool.name} orders equal scores {_ORDERS[tool.equal_scores]}: {between}")
    return notes


@dataclass(frozen=True, repr=False)
class Evaluation(Tabular[Estimate]):
    """A table of estimates: a row per recommender, and per group if there are groups; a column per metric.

    `print` it, or convert it to a dataframe, LaTeX, Markdown, TSV or JSON. ``table["A", "ap"]`` is one
    `Estimate`; with groups it is ``table["A", "ap", "new users"]``.

    In HTML, Markdown and LaTeX the best value of a column is bold if `truerank.compare` finds its recommender better
    than every other one, on the same instances and adjusted for all pairs, metrics and groups of the table. Nothing is
    bold in tables from Spark, by the convention of another tool, or read back from a pickle.
    """

    recommenders: tuple[str, ...]
    metrics: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    """Row by row, in the order of `recommenders`, `groups` and `metrics`."""
    notes: tuple[str, ...]
    groups: tuple[str, ...] = ()
    directions: tuple[int, ...] = ()
    """For each metric, whether high values (1) or low ones (-1) are good, or neither (0); if empty, nothing is bold."""
    contest: Callable[[], Comparison] | None = field(default=None, compare=False)
    """Compares the recommenders when bold type is needed; it holds their ranks. None: nothing is bold."""

    def __getstate__(self) -> dict[str, Any]:
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return own | {"contest": None}  # a pickle does not carry all ranks

    def _named(self, key: tuple[str, ...] | str) -> Estimate:
        """Return one cell by recommender, metric and group; the recommender may be left out if there is only one."""
        given = key if isinstance(key, tuple) else (key,)
        if len(given) == 1 + bool(self.groups) and len(self.recommenders) == 1:
            given = (self.recommenders[0], *given)
        if len(given) == 1 and len(self.recommenders) > 1:
            raise InputError(f"name the recommender too, as in table[{self.recommenders[0]!r}, {key!r}].")
        cells = dict(self._cells())
        named = (given[0], *(self._column(str(metric)) for metric in given[1:2]), *given[2:])
        if named not in cells:
            columns = f"{self.metrics}, groups {self.groups}" if self.groups else self.metrics
            raise InputError(f"the table has rows {self.recommenders} and columns {columns}, got {key!r}.")
        return cells[named]

    def _keys(self) -> Iterator[tuple[str, ...]]:
        """Recommender, metric and group, if there are groups, of each estimate."""
        for name, group, metric in product(self.recommenders, self.groups or ("",), self.metrics):
            yield (name, metric, group) if self.groups else (name, metric)

    def _cells(self) -> Iterator[tuple[tuple[str, ...], Estimate]]:
        return zip(self._keys(), self.estimates, strict=True)

    def _column(self, name: str) -> str:
        """Return the name of a column, which may be the requested name followed by an estimator."""
        if name in self.metrics:
            return name
        from truerank.evaluation.comparisons import with_estimator
        from truerank.evaluation.list_evaluations import as_list_metric

        named = as_list_metric(name)
        text = str(as_metrics(name)[0] if named is name else named)
        return with_estimator(text, self.metrics)

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return a record per cell: recommender, group, the fields of the estimate, tied_share, low, high."""
        records = []
        for (name, _, *group), cell in zip(self._keys(), self.estimates, strict=True):
            weight = cell.n if cell.weight is None else cell.weight
            labels = {"group": group[0], "weight": weight} if group else {}
            records.append({"recommender": name, **labels, **cell.record(level)})
        return records

    def to_table(self) -> Table:
        """Return a row per recommender and group: means with standard errors, instances, and how many have ties.

        Nothing in it is bold: that takes a comparison, which `to_html`, `to_markdown` and `to_latex` make.
        """
        return self._table([False] * len(self.estimates))

    def _table_with_bold(self) -> Table:
        return self._table(self._best)

    def _table(self, best: Sequence[bool]) -> Table:
        header = ("", *(("group",) if self.groups else ()), *self.metrics, "instances", "tied")
        keys, width = list(self._keys()), len(self.metrics)
        cells = [cell.cell(best=first) for cell, first in zip(self.estimates, best, strict=True)]
        rows = []
        for start in range(0, len(cells), width):
            (name, _, *group), first = keys[start], self.estimates[start]
            ends = str(first.n_instances), f"{first.tied_share:.1%}"
            rows.append((*map(Cell, (name, *group)), *cells[start : start + width], *map(Cell, ends)))
        return Table(header, tuple(rows), tuple(self.rows()), self.notes, labels=1 + bool(self.groups))

    @cached_property
    def _best(self) -> list[bool]:
        """For each estimate, whether it is the best and its recommender is found better than every other one."""
        winners = self._winners()
        return [winners.get(key[1:]) == key[0] and self._is_foremost(key, cell.mean) for key, cell in self._cells()]

    def _winners(self) -> dict[tuple[str, ...], str | None]:
        """Return who is found better than all others, by metric and group; nothing if they can't be compared."""
        if self.contest is None or len(self.recommenders) < 2:
            return {}
        from truerank.evaluation.differences import found_best

        try:
            result = self.contest()
        except InputError:  # such as different instances, or candidates chosen in different ways
            return {}
        return {
            (metric, group) if group else (metric,): found_best(result.of(metric, group))
            for metric in result.metrics
            for group in result.groups or ("",)
        }

    def _is_foremost(self, key: tuple[str, ...], mean: float) -> bool:
        """Whether no other value is better: where values are biased, the better recommender may show a worse value."""
        sign = self.directions[self.metrics.index(key[1])] if self.directions else 0
        rivals = [cell.mean for other, cell in self._cells() if other[1:] == key[1:]]
        return sign != 0 and all(sign * mean >= sign * rival for rival in rivals)

    def _rows(self) -> Sequence[Estimate]:
        return self.estimates

    def _names(self) -> list[tuple[str, ...]]:
        """Recommender, if there are several, group, if there are groups, and metric of each estimate."""
        first = 0 if len(self.recommenders) > 1 else 1
        return [(key[0], *key[2:], key[1])[first:] for key in self._keys()]

    def _numbers(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for name, cell in zip(self._names(), self.estimates, strict=True):
            yield name, cell.mean
            yield (*name, "se"), cell.standard_error


def _cell_notes(cells: Sequence[Estimate], groups: Sequence[str]) -> tuple[str, ...]:
    """Return the notes of estimates, group by group; those on some of the groups name them."""
    width = len(cells) // max(len(groups), 1)
    parts = {name: cells[at * width : (at + 1) * width] for at, name in enumerate(groups)} or {"": cells}
    general = dict.fromkeys(note for cell in cells for note in cell.caveats)
    own = {name: [note for cell in part for note in cell.notes if note not in general] for name, part in parts.items()}
    return (*general, *by_name(own))
