"""Several metrics of one or several recommenders in one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from tqdm import tqdm

from truerank.arrays import AnyArray, Floats
from truerank.conventions import convention as find_convention
from truerank.corrections.assumptions import Assumption, check_assumption
from truerank.corrections.reading import AnyMetric, as_metrics
from truerank.corrections.recommended import recommended
from truerank.errors import InputError
from truerank.evaluation.by_convention import estimates_by
from truerank.evaluation.chance_levels import chance_notes
from truerank.evaluation.elsewhere import engine_of
from truerank.evaluation.estimate_tables import Evaluation, directions, table_notes
from truerank.evaluation.estimates import Estimate, only_bounds, summary, weighted_summary
from truerank.evaluation.group_parts import Part, parts_by, values_by_part
from truerank.evaluation.groups import Groups
from truerank.evaluation.per_instance import Ties, checked_terms, untied
from truerank.lists.recommendations import Recommendations
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks, check_ranks
from truerank.sampling.designs import Rng

if TYPE_CHECKING:
    from truerank.data.interactions import PerUser
    from truerank.evaluation.comparisons import Comparison
    from truerank.evaluation.exact_ranges import BoundValues, ExactRange
    from truerank.formats.source import Source
    from truerank.metrics.list_base import ListMetric

Evaluable = Ranks | Recommendations
"""What has metrics: ranks of relevant items, or recommended lists."""


def evaluate(
    ranks: Evaluable | Mapping[str, Evaluable],
    metrics: AnyMetric | ListMetric | Iterable[AnyMetric | ListMetric],
    *,
    train: PerUser | None = None,
    truth: Source = None,
    item_vectors: AnyArray | None = None,
    by: Groups | Mapping[Any, Any] | Any | None = None,
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
        For instance ``["ndcg@10", "recall@10", "auc"]``. Under inverse sampling a metric without an estimator takes
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
    ties : {"expected", "optimistic", "pessimistic", "random"}
        See `truerank.values`.
    rng : int or numpy.random.Generator, optional
        Seed for ``ties="random"``: one order of the ties of a recommender serves all metrics.
    assume : {"nothing", "falling", "smooth"}
        What the intervals of corrected metrics may assume of the exact ranks, among the top tenth of the candidates and
        for the first relevant item of an instance: nothing; that a deeper rank is never more likely; or that, besides,
        a rank twice as deep is at least a quarter as likely.
    convention : {"trec_eval", "ir-measures", "ranx", "rectools", "implicit", "lenskit", "recbole", "cornac", \
                  "scikit-learn"}, optional
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
    if by is not None and convention is not None:
        raise InputError("give either `by` or `convention`, not both.")
    if any(isinstance(one, Recommendations) for one in given.values()):
        return _evaluate_lists(
            given,
            metrics,
            partial(evaluate, ties=ties, rng=rng, assume=assume, convention=convention, progress=progress),
            by=by,
            truth=truth,
            train=train,
            item_vectors=item_vectors,
        )
    for name, value in (("train", train), ("truth", truth), ("item_vectors", item_vectors)):
        if value is not None:
            raise InputError(f"`{name}` is for recommended lists, but these are ranks.")
    named, chosen = cast("dict[str, Ranks]", given), as_metrics(cast("AnyMetric", metrics))
    if not named or not chosen:
        raise InputError("evaluate needs at least one recommender and one metric.")
    check_assumption(assume)
    if (engine := engine_of(named)) is not None:
        return engine.evaluate(named, chosen, by=by, ties=ties, rng=rng, assume=assume, convention=convention)
    check_ranks(*named.values())
    if convention is not None:
        return _by_convention(named, chosen, convention, ties, rng)
    broken = untied(named, ties, rng)
    groups = None if by is None else Groups.of(by)
    parts = parts_by(broken, groups)
    taken = {name: [recommended(metric, one) for metric in chosen] for name, one in broken.items()}
    work = [(name, metric, checked_terms(broken[name], metric)) for name, own in taken.items() for metric in own]
    cells: dict[str, list[list[Estimate]]] = {name: [] for name in named}
    ranges = _Ranges(assume)
    with tqdm(work, desc="metrics", disable=None if progress else True, delay=1.0, leave=False) as bar:
        for name, metric, terms in bar:
            values = values_by_part(broken[name], terms, parts[name])
            cells[name].append(
                [
                    _summary(found, part, named[name], metric, ties, ranges.of(name, broken[name], part, metric))
                    for found, part in zip(values, parts[name], strict=True)
                ]
            )
    shown = () if groups is None else tuple(part.name for part in parts[next(iter(named))])
    rows = {name: [cell for row in zip(*columns, strict=True) for cell in row] for name, columns in cells.items()}
    estimates = tuple(cell for row in rows.values() for cell in row)
    own = {
        name: (*one.notes, *(() if shown else chance_notes(one, taken[name], rows[name])))
        for name, one in named.items()
    }
    notes = table_notes(own, rows, shown)
    contest = partial(_compared, broken, chosen, by=groups, assume=assume)
    return Evaluation(tuple(named), _columns(chosen, taken), estimates, notes, shown, directions(chosen), contest)


def _compared(ranks: Mapping[str, Ranks], metrics: Sequence[Metric], **options: Any) -> Comparison:
    """Compare what was evaluated; loaded only for tables with bold type."""
    from truerank.evaluation.comparisons import compare

    return compare(ranks, metrics, **options)


def _evaluate_lists(given: Mapping[str, Any], metrics: Any, evaluate_ranks: Any, **others: Any) -> Evaluation:
    """Return a table of metrics of lists, and of the ranks of relevant items in them."""
    from truerank.evaluation.list_evaluations import list_columns, list_notes

    if not all(isinstance(one, Recommendations) for one in given.values()):
        raise InputError("lists and ranks can't be in one table.")
    columns, shown, notes, contest = list_columns(given, metrics, evaluate_ranks, **others)
    cells = [cell for row in zip(*(column.cells for column in columns), strict=True) for cell in row]
    width = len(cells) // len(given)
    rows = {name: cells[place * width : (place + 1) * width] for place, name in enumerate(given)}
    own = table_notes(list_notes(given, others["train"]), rows, shown)
    names, signs = tuple(column.name for column in columns), tuple(column.direction for column in columns)
    return Evaluation(tuple(given), names, tuple(cells), tuple(dict.fromkeys((*own, *notes))), shown, signs, contest)


def _by_convention(named: Mapping[str, Ranks], chosen: Sequence[Metric], name: str, ties: Ties, rng: Rng) -> Evaluation:
    found = find_convention(name)
    rows = {key: estimates_by(found, one, chosen, ties, rng) for key, one in named.items()}
    estimates = tuple(cell for row in rows.values() for cell in row)
    notes = table_notes({key: one.notes for key, one in named.items()}, rows, ())
    return Evaluation(tuple(named), tuple(map(str, chosen)), estimates, notes, directions=directions(chosen))


def _columns(chosen: Sequence[Metric], taken: Mapping[str, list[Metric]]) -> tuple[str, ...]:
    """Return the names of the columns: those of the estimators, unless recommenders differ in them."""
    names = [{str(metrics[place]) for metrics in taken.values()} for place in range(len(chosen))]
    return tuple(own.pop() if len(own) == 1 else str(asked) for asked, own in zip(chosen, names, strict=True))


class _Ranges:
    """What is known of exact metrics: the corrections of one metric share the bounds of all instances."""

    def __init__(self, assume: Assumption) -> None:
        self.assume = assume
        self.bounds: dict[tuple[str, str], BoundValues] = {}

    def of(self, name: str, ranks: Ranks, part: Part, metric: Metric) -> ExactRange | None:
        """Return the range for a part of the instances of a recommender; there is none for a part of their items."""
        if part.items is not None or not only_bounds(ranks, metric):
            return None
        from truerank.evaluation.exact_ranges import ExactRange, bound_values

        key = (name, str(metric.estimated))
        if key not in self.bounds:
            self.bounds[key] = bound_values(ranks, metric.estimated, self.assume)
        clusters = None if ranks.clusters is None else ranks.clusters[part.rows]
        return ExactRange.of(self.bounds[key].take(part.rows), clusters)


def _summary(
    values: Floats, part: Part, ranks: Ranks, metric: Metric, ties: Ties, exact_range: ExactRange | None
) -> Estimate:
    own = ranks[part.rows] if part.name else ranks
    if part.items is None:
        return summary(values, own, metric, ties, exact_range)
    return weighted_summary(values, part.weights, own, metric, ties, part)
