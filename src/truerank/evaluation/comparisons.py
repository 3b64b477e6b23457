"""`compare`: all pairs of recommenders on the same instances, adjusted for the number of tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any, Literal, get_args

import numpy as np

from truerank.core.checks import AnyArray, InputError, Rng, by_name, check_choice, counted
from truerank.core.ranks import Ranks, n_named
from truerank.core.tables import Table, Tabular
from truerank.estimators.corrected import ASSUMING, AnyMetric, Assumption, as_metrics, check_assumption, recommended
from truerank.evaluation import paired_tests
from truerank.evaluation.anytime_tests import AnytimeTest
from truerank.evaluation.differences import Difference, check_margin, conclusion, differences_table, one_sided
from truerank.evaluation.exact_ranges import advice, remedy
from truerank.evaluation.groups import Groups
from truerank.evaluation.intervals import check_level, engine_of
from truerank.evaluation.joint_tests import RandomisedTukey, jointly_adjusted
from truerank.evaluation.orders import Order
from truerank.evaluation.paired_tests import Adjustment, PairedTest, TestName, as_test
from truerank.evaluation.paired_values import Entrant, Key, PairedPart, Task, paired_parts
from truerank.evaluation.per_instance import Ties, parts_by, untied
from truerank.evaluation.propensities import Propensity, check_weighted
from truerank.metrics.definitions import Metric

Unmatched = Literal["refuse", "drop"]
"""What to do with instances that only some recommenders have."""
Runs = Ranks | Sequence[Ranks]
"""The ranks of a recommender: one run, or several with different seeds."""

_FEW = 30
_JOINT = ("max-t", "tukey")
# these do not bound the chance of any false finding
_NOT_ALL = ("none", "benjamini-hochberg")


@dataclass(frozen=True, repr=False)
class Comparison(Tabular[Difference]):
    """All differences between recommenders: ``result["B", "A", "ndcg@10"]`` is B minus A.

    P-values, intervals and verdicts are adjusted for all tests of the comparison. `print` it, or convert it to a
    dataframe, LaTeX, Markdown, TSV or JSON.
    """

    recommenders: tuple[str, ...]
    metrics: tuple[str, ...]
    differences: tuple[Difference, ...]
    level: float
    adjustment: Adjustment
    notes: tuple[str, ...]
    groups: tuple[str, ...] = ()

    def _named(self, key: Any) -> Difference:
        """Return one difference by recommender, baseline, metric and group.

        The metric may be left out if there is only one; the group is given if there are groups.
        """
        given = key if isinstance(key, tuple) else (key,)
        names = (*given, self.metrics[0]) if len(given) == 2 and len(self.metrics) == 1 else given
        if len(names) != (4 if self.groups else 3):
            wanted = "baseline, metric and group" if self.groups else "baseline and metric"
            raise InputError(f"name recommender, {wanted}, as in result['B', 'A', 'ap'], got {key!r}.")
        pair, cell = tuple(names[:2]), (with_estimator(str(as_metrics(names[2])[0]), self.metrics), *names[3:])
        for each in self.differences:
            if (each.metric, *((each.group,) if self.groups else ())) == cell:
                if (each.recommender, each.baseline) == pair:
                    return each
                if (each.baseline, each.recommender) == pair:
                    return each.reversed()
        pairs = ", ".join(sorted({f"{each.recommender} - {each.baseline}" for each in self.differences}))
        grouped = f" and the groups {self.groups}" if self.groups else ""
        raise InputError(f"the comparison has the pairs {pairs}, the metrics {self.metrics}{grouped}, got {key!r}.")

    def order(self, metric: str | None = None, group: str = "") -> Order:
        """Return who may be best, and the places that each recommender may have, by one metric in one group.

        The metric may be left out if there is only one. Needs all pairs, and an adjustment that bounds the chance of
        any false finding.
        """
        if self.adjustment in _NOT_ALL:
            raise InputError(f"an order needs adjustment 'holm', 'max-t' or 'tukey', got {self.adjustment!r}.")
        name = (
            self.metrics[0] if metric is None and len(self.metrics) == 1 else with_estimator(str(metric), self.metrics)
        )
        check_choice("metric", name, self.metrics)
        if self.groups or group:
            check_choice("group", group, self.groups)
        return Order.of(self.of(name, group))

    def of(self, metric: str, group: str = "") -> list[Difference]:
        """Return the differences of all pairs by one metric, in one group if there are groups."""
        return [each for each in self.differences if (each.metric, each.group) == (metric, group)]

    @property
    def n_tests(self) -> int:
        """Number of tests that p-values, intervals and verdicts are adjusted for: those with a p-value."""
        return paired_tests.number_of_tests([each.p_value for each in self.differences])

    def to_table(self) -> Table:
        """Return a row per metric and pair: both means, the difference, its interval, p-value, and the verdict.

        For sampled ranks it also shows the parts of the error.
        """
        adjustment = "" if self.adjustment == "none" or self.n_tests < 2 else f" ({self.adjustment})"
        return differences_table(self.differences, adjustment, self.notes)

    def _rows(self) -> Sequence[Difference]:
        return self.differences

    def _names(self) -> list[tuple[str, ...]]:
        return [name for each in self.differences for name in each._names()]

    def _numbers(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for each in self.differences:
            yield from each._numbers()


def with_estimator(name: str, metrics: Sequence[str]) -> str:
    """Return the name of a metric among these, which may be the requested name followed by an estimator."""
    estimated = [metric for metric in metrics if metric.startswith(f"{name}~")]
    return estimated[0] if name not in metrics and len(estimated) == 1 else name


def conclusions(result: Comparison) -> tuple[str, ...]:
    """Return a sentence for each metric, and for each group if there are groups.

    Examples
    --------
    >>> import truerank as tr
    >>> a, b = tr.Ranks.from_ranks([5, 6] * 20, n=9), tr.Ranks.from_ranks([1, 2] * 20, n=9)
    >>> conclusions(tr.compare({"A": a, "B": b, "C": a}, "rr"))
    ('rr: B is best: it is better than A, C.',)
    >>> conclusions(tr.compare({"A": a, "B": b, "C": b}, "rr"))
    ('rr: B is better than A; no difference from C was found. One of B, C is best (95 %).',)
    """
    return tuple(
        f"{f'{group}, ' if group else ''}{metric}: {conclusion(result.of(metric, group))}{_best(result, metric, group)}"
        for group in result.groups or ("",)
        for metric in result.metrics
    )


def _best(result: Comparison, metric: str, group: str) -> str:
    """Return a sentence on who may be best, if that is some of several."""
    pairs = len(result.recommenders) * (len(result.recommenders) - 1) // 2
    if result.adjustment in _NOT_ALL or len(own := result.of(metric, group)) < max(pairs, 3):
        return ""
    order = Order.of(own)
    sentence = order.conclusion
    return f" {sentence[0].upper()}{sentence[1:]}" if 1 < len(order.best) < len(order.places) else ""


def compare(
    ranks: Mapping[str, Runs],
    metrics: AnyMetric | Iterable[AnyMetric],
    *,
    baseline: str | None = None,
    by: Groups | Mapping[Any, Any] | Any | None = None,
    propensity: Propensity | Mapping[Any, float] | Any | None = None,
    test: TestName | PairedTest = "likelihood",
    adjustment: Adjustment = "holm",
    level: float = 0.95,
    margin: float | None = None,
    unmatched: Unmatched = "refuse",
    ties: Ties = "expected",
    assume: Assumption = "nothing",
    same_candidates: bool = False,
    replicates: int = 10_000,
    rng: Rng = None,
    progress: bool = False,
) -> Comparison:
    """Return how recommenders differ, pair by pair, on the same instances.

    Parameters
    ----------
    ranks : dict of name to Ranks, or to a list of Ranks
        Two recommenders or more. Instances are matched by id. Lists hold runs with different seeds, of training, of
        sampled candidates or of both, any number for each recommender: errors, p-values and verdicts then hold for new
        runs as well.
    metrics : list of str, Metric or function (or one of them)
    baseline : str, optional
        The recommender that all others are compared with; all pairs by default, the later minus the earlier.
    by : dict, dataframe or Groups, optional
        Groups to compare separately, as for `truerank.evaluate`.
    propensity : Propensity, dict or dataframe, optional
        Probability that each relevant item was logged, as for `truerank.evaluate`.
    test : {"likelihood", "t", "bootstrap", "randomisation", "anytime"} or PairedTest
        Empirical likelihood that allows for unseen differences; paired t-test; BCa bootstrap; random exchange of the
        two recommenders; bets that stay valid however often one looks while users are added at the end.
        docs/comparing.md says when to use which.
    adjustment : {"holm", "max-t", "tukey", "benjamini-hochberg", "none"}
        How p-values, intervals and verdicts allow for the number of tests: all pairs, metrics and groups of this
        comparison. With "max-t" all intervals hold together, and the dependence between pairs is resampled; with
        "tukey" p-values are also those of the randomised Tukey test.
    level : float
        Confidence level of the whole comparison.
    margin : float, optional
        A difference that does not matter; verdicts then also say which pairs differ by less, and which recommenders are
        not worse by more than that, by one-sided tests.
    unmatched : {"refuse", "drop"}
        What to do with instances that only some recommenders have. Dropped ones are counted in a note.
    ties : {"expected", "optimistic", "pessimistic", "random"}
        See `truerank.values`.
    assume : {"nothing", "falling", "smooth"}
        What bounds of exact metrics, from sampled ranks, may assume; see `truerank.evaluate`.
    same_candidates : bool
        Whether all recommenders were ranked among the same sampled candidates. Orders on these very users are then
        more certain. Not needed with several runs, whose spread shows it.
    replicates : int
        Resamples of the bootstrap, or random exchanges.
    rng : int or numpy.random.Generator, optional
        Seed of the resamples, and for ``ties="random"``.
    progress : bool
        Whether to show a progress bar of resamples, on a terminal only, when they take more than a second.

    Notes
    -----
    Where an id occurs several times, e.g. for a user with several sessions, the user is the independent unit: errors
    are clustered by user, and users are resampled.

    Where the metric of sampled ranks is biased, corrected or fitted, intervals, p-values and verdicts are about the
    exact metric, by bounds that hold whatever the distribution of the ranks: an order is claimed only if the sample
    determines it. `Difference.expectation_interval` is about the difference that is shown.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> rng = np.random.default_rng(0)
    >>> old = rng.integers(1, 100, size=500)
    >>> new = np.maximum(old - rng.integers(0, 9, size=500), 1)
    >>> ranks = {"old": tr.Ranks.from_ranks(old, n=100), "new": tr.Ranks.from_ranks(new, n=100)}
    >>> result = tr.compare(ranks, "ndcg@10")
    >>> result["new", "old", "ndcg@10"].verdict
    'new is better'
    >>> result["new", "old", "ndcg@10"].not_worse(0.01)
    True
    """
    chosen = as_metrics(metrics)
    if n_named(ranks) < 2 or not chosen:
        raise InputError("compare needs at least two recommenders, by name, and one metric.")
    check_choice("adjustment", adjustment, get_args(Adjustment))
    if baseline is not None:
        check_choice("baseline", baseline, tuple(ranks))
    check_level(level)
    check_assumption(assume)
    if margin is not None:
        check_margin(margin)
        one_sided(level)
    task = Task(
        names=tuple(ranks),
        pairs=_pairs(tuple(ranks), None if adjustment in _JOINT else baseline),
        level=level,
        margin=margin,
        same_candidates=same_candidates,
        lower_is_better=tuple(metric.lower_is_better for metric in chosen),
    )
    seen = None if propensity is None else Propensity.of(propensity)
    engine, method = engine_of(ranks), AnytimeTest() if test == "anytime" else as_test(test, replicates, rng, progress)
    if adjustment == "tukey":
        method = RandomisedTukey(method, replicates, rng, progress)
    if engine is None:
        groups = None if by is None else Groups.of(by)
        entrants, dropped = entrants_of(ranks, chosen, groups, propensity=seen, unmatched=unmatched, ties=ties, rng=rng)
        if adjustment == "tukey" and any(len(each.runs) > 1 or each.is_sampled for each in entrants.values()):
            raise InputError("adjustment='tukey' needs one run of exact ranks for each recommender.")
        unused = () if groups is None else groups.notes(*(groups.ids_in(each.runs[0]) for each in entrants.values()))
        dropped = (*dropped, *unused)
        parts = paired_parts(entrants, chosen, task, method, assume)
        shown = () if by is None else tuple(dict.fromkeys(group for group, _, _ in parts))
    else:
        entrants = {}

        def step(some: Mapping[str, Ranks], within: Groups | None, seed: Rng) -> dict[Key, PairedPart]:
            own, _ = entrants_of(some, chosen, within, propensity=seen, ties=ties, rng=seed)
            return paired_parts(own, chosen, task, method, assume)

        parts, shown, dropped = engine.compared(ranks, chosen, step, by=by, rng=rng, unmatched=unmatched, test=method)
    keys = [
        (group, at, pair) for group in shown or ("",) for at in range(len(chosen)) for pair in range(len(task.pairs))
    ]
    found = [parts[key].difference(task, key) for key in keys]
    about = f"intervals, p-values and verdicts are about the exact metric, {ASSUMING[assume]}"
    own = [*dropped, *_notes(entrants), *([about] if any(each.bounded for each in found) else [])]
    final = _jointly(found, level, baseline) if adjustment in _JOINT else _adjusted(found, adjustment, level)
    remarks = (*_remarks(final), *own, *_remedies(found, entrants, assume), *_rough(final), *_tests(final, adjustment))
    names = tuple(parts[group, at, 0].metric for group, at, pair in keys[: len(chosen) * len(task.pairs)] if pair == 0)
    return Comparison(task.names, names, final, level, adjustment, tuple(dict.fromkeys(remarks)), shown)


def matched(ranks: Mapping[str, Ranks], unmatched: Unmatched = "refuse") -> tuple[dict[str, Ranks], tuple[str, ...]]:
    """Return the ranks on their common instances, in the order of the first recommender, and notes.

    Instances are matched by id, or by position if there are no ids. An id that occurs several times, as for a user with
    several sessions, is matched only if all recommenders list the same ids in the same order.

    Parameters
    ----------
    ranks : dict of name to Ranks
    unmatched : {"refuse", "drop"}
        What to do with instances that only some recommenders have: raise `InputError`, or drop and count them.

    Examples
    --------
    >>> a = Ranks.from_ranks([1, 2, 3], n=9, ids=["ann", "bob", "cyd"])
    >>> b = Ranks.from_ranks([4, 5], n=9, ids=["cyd", "ann"])
    >>> both, notes = matched({"A": a, "B": b}, "drop")
    >>> both["B"].rank.tolist(), notes
    ([5, 4], ('A: 1 instance that not all recommenders have is left out',))
    """
    check_choice("unmatched", unmatched, get_args(Unmatched))
    if any(one.ids is None for one in ranks.values()):
        return dict(ranks), _by_position(ranks)
    ids = {name: _ids(one) for name, one in ranks.items()}
    if len({own.dtype.kind == "U" for own in ids.values()}) > 1:  # some are text and others numbers
        ids = {name: own.astype(np.str_) for name, own in ids.items()}
    first = next(iter(ids.values()))
    alike = all(np.array_equal(first, own) for own in ids.values())
    same, notes = (dict(ranks), ()) if alike else _by_id(ranks, ids, unmatched)
    _check_same_truth(same)
    return same, (*notes, *_unequal_catalogues(same))


def _ids(ranks: Ranks) -> AnyArray:
    return np.arange(len(ranks)) if ranks.ids is None else ranks.ids


def _by_position(ranks: Mapping[str, Ranks]) -> tuple[str, ...]:
    """Check that all have the same number of instances, and return a note that these are matched by position."""
    if any(one.ids is not None for one in ranks.values()):
        without = next(name for name, one in ranks.items() if one.ids is None)
        raise InputError(f"instances are matched by id, but the ranks of {without!r} have none.")
    sizes = {name: len(one) for name, one in ranks.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
        raise InputError(f"without ids, recommenders must have the same number of instances, but {found}.")
    _check_same_truth(ranks)
    return ("the instances have no ids and are matched by position", *_unequal_catalogues(ranks))


def _by_id(
    ranks: Mapping[str, Ranks], ids: Mapping[str, AnyArray], unmatched: Unmatched
) -> tuple[dict[str, Ranks], tuple[str, ...]]:
    for name, own in ids.items():
        distinct, times = np.unique(own, return_counts=True)
        if distinct.size < own.size:
            twice = distinct[times > 1].tolist()[0]
            rule = "so all recommenders must list the same ids in the same order"
            raise InputError(f"the id {twice!r} occurs several times in {name!r}, {rule}.")
    first, *others = ids.values()
    common = first[np.logical_and.reduce([np.isin(first, own) for own in others])]
    extra = {name: own[~np.isin(own, common)] for name, own in ids.items()}
    for name, alone in extra.items():
        if unmatched == "refuse" and alone.size:
            shown = ", ".join(map(repr, alone[:3].tolist())) + (", ..." if alone.size > 3 else "")
            missing = counted(alone.size, f"instance of {name!r} ({shown}) is", f"instances of {name!r} ({shown}) are")
            hint = "leave such instances out with unmatched='drop'"
            raise InputError(f"{missing} missing from another recommender; {hint}.")
    if common.size == 0:
        raise InputError(f"the recommenders {', '.join(map(repr, ids))} have no instance in common.")
    words = ("instance that not all recommenders have is", "instances that not all recommenders have are")
    notes = [f"{name}: {counted(alone.size, *words)} left out" for name, alone in extra.items() if alone.size]
    orders = {name: np.argsort(own) for name, own in ids.items()}
    places = {name: order[np.searchsorted(ids[name], common, sorter=order)] for name, order in orders.items()}
    return {name: one[places[name]] for name, one in ranks.items()}, tuple(notes)


def _check_same_truth(ranks: Mapping[str, Ranks]) -> None:
    """Refuse instances whose number of relevant items differs between recommenders."""
    (first, one), *others = ranks.items()
    for name, other in others:
        if np.any(differ := one.n_relevant != other.n_relevant):
            at = int(np.argmax(differ))
            instance = repr(_ids(one)[at].item())
            raise InputError(
                f"recommenders must have the same relevant items, but instance {instance} has "
                f"{one.n_relevant[at]} for {first!r} and {other.n_relevant[at]} for {name!r}."
            )


def _unequal_catalogues(ranks: Mapping[str, Ranks]) -> tuple[str, ...]:
    """Return a note if instances were ranked among different numbers of candidates, which cut ranks do not know."""
    whole = [(name, one) for name, one in ranks.items() if one.depth is None]
    for (first, one), (name, other) in pairwise(whole):
        differ = np.flatnonzero(one.n_catalogue != other.n_catalogue).tolist()
        if differ:
            instances = counted(len(differ), "instance was", "instances were")
            sizes = f"{one.n_catalogue[differ[0]]:,} and {other.n_catalogue[differ[0]]:,}"
            which = f"{instances} ranked among different numbers of candidates by {first!r} and {name!r}"
            return (f"{which}, such as {sizes} for {_ids(one)[differ[0]].item()!r}: fewer make better ranks",)
    return ()


def entrants_of(
    ranks: Mapping[str, Runs],
    metrics: Sequence[Metric],
    groups: Groups | None,
    *,
    propensity: Propensity | None = None,
    unmatched: Unmatched = "refuse",
    ties: Ties,
    rng: Rng,
) -> tuple[dict[str, Entrant], tuple[str, ...]]:
    """Return the recommenders of a comparison on their common instances, and notes on other instances."""
    several = {name: [one] if isinstance(one, Ranks) else list(one) for name, one in ranks.items()}
    for name, own in several.items():
        if not own:
            raise InputError(f"each recommender must have at least one run, but {name!r} has none.")
    labels = {name: [name, *(f"{name}, run {at}" for at in range(2, len(own) + 1))] for name, own in several.items()}
    runs = {label: run for name, own in several.items() for label, run in zip(labels[name], own, strict=True)}
    same, notes = matched(runs, unmatched)
    broken = untied(same, ties, rng)
    parts = parts_by(broken, groups, propensity)
    entrants = {}
    for name, own_labels in labels.items():
        first, *_ = own = [broken[label] for label in own_labels]
        taken = tuple(recommended(metric, first) for metric in metrics)
        for metric in taken if propensity is not None else ():
            check_weighted(metric, first)
        entrants[name] = Entrant(tuple(own), taken, tuple(parts[label] for label in own_labels))
    return entrants, notes


def _pairs(names: Sequence[str], baseline: str | None) -> list[tuple[int, int]]:
    if baseline is None:
        return [(later, earlier) for earlier, later in combinations(range(len(names)), 2)]
    base = names.index(baseline)
    return [(one, base) for one in range(len(names)) if one != base]


def _adjusted(differences: Sequence[Difference], how: Adjustment, level: float) -> tuple[Difference, ...]:
    given = [each.p_value for each in differences]
    p_values = paired_tests.adjusted(given, how).tolist()
    levels = paired_tests.adjusted_levels(given, how, level).tolist()
    return tuple(
        replace(each, adjusted_p_value=p, adjusted_level=own)
        for each, p, own in zip(differences, p_values, levels, strict=True)
    )


def _jointly(differences: Sequence[Difference], level: float, baseline: str | None) -> tuple[Difference, ...]:
    blocks: dict[tuple[str, str], list[Difference]] = {}
    for each in differences:
        blocks.setdefault((each.group, each.metric), []).append(each)
    found = (jointly_adjusted(own, level, len(blocks), baseline) for own in blocks.values())
    return tuple(each for own in found for each in own)


def _notes(entrants: Mapping[str, Entrant]) -> tuple[str, ...]:
    return by_name(
        {name: [note for run in each.runs for note in _run_notes(run, each.metrics)] for name, each in entrants.items()}
    )


def _run_notes(run: Ranks, metrics: Sequence[Metric]) -> list[str]:
    notes = list(run.notes)
    for metric in metrics:
        notes += [*metric.notes(run), *([advice(metric, run)] if metric.biased(run) else [])]
    return notes


def _remedies(differences: Sequence[Difference], entrants: Mapping[str, Entrant], assume: Assumption) -> list[str]:
    """Return what would determine an order that the sample leaves open."""
    left_open = {each.metric for each in differences if each.bounded and each.finding.kind == "not determined"}
    return [
        f"to determine the order by {metric.estimated}, "
        + remedy(metric.estimated, first.runs[0], assume).removeprefix("; ")
        for first in list(entrants.values())[:1]
        for metric in first.metrics
        if str(metric) in left_open and first.sampled
    ]


def _remarks(differences: Sequence[Difference]) -> list[str]:
    """Return a note on each difference that points away from its verdict."""
    return [
        f"{f'{each.group}, ' if each.group else ''}{each.metric}: {each.finding.in_full}"
        for each in differences
        if each.finding.remark
    ]


def _rough(differences: Sequence[Difference]) -> list[str]:
    """Return notes on numbers that are only rough."""
    notes = []
    for each in differences:
        about = f"{each.group}: " if each.group else ""
        if each.n_undefined:
            count = f"{each.n_undefined} of {each.n + each.n_undefined}"
            notes.append(f"{about}{each.metric} is undefined for {count} instances")
        if each.n_units < each.n:
            notes.append(f"{about}{each.n} instances of {each.n_units} users: errors are clustered by user")
        if each.n_units < _FEW:
            few = counted(each.n_units, "independent instance", "independent instances")
            rough = "intervals and p-values are rough" if each.n_units > 1 else "too few for an interval or a p-value"
            notes.append(f"{about}only {few}: {rough}")
        elif each.outcome.too_skewed:
            skewed = f"differences in {each.metric} are very skewed for {each.n_units} instances"
            notes.append(f"{about}{skewed}: intervals and p-values are rough")
    return list(dict.fromkeys(notes))


def _tests(differences: Sequence[Difference], how: Adjustment) -> list[str]:
    """Return a note on how many tests there are, if there are several."""
    tests = paired_tests.number_of_tests([each.p_value for each in differences])
    if tests < 2:
        return []
    name = how if how == "max-t" else how.title()
    adjusted_for = f"not adjusted for {tests} tests" if how == "none" else f"adjusted for {tests} tests ({name})"
    return [f"p-values, intervals and verdicts are {adjusted_for}"]
