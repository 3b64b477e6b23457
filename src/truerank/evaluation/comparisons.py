"""Which recommender is better, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

from truerank.corrections.reading import AnyMetric, as_metrics
from truerank.display.tables import Cell, Table, Tabular, measured
from truerank.errors import InputError
from truerank.evaluation.adjustments import Adjustment, adjusted
from truerank.evaluation.differences import Difference, check_margin, one_sided
from truerank.evaluation.elsewhere import engine_of
from truerank.evaluation.group_parts import parts_by
from truerank.evaluation.groups import Groups
from truerank.evaluation.intervals import check_level
from truerank.evaluation.matching import Unmatched, matched
from truerank.evaluation.paired_differences import Task, blocks_of, tested_differences
from truerank.evaluation.paired_tests import PairedTest, StudentTest
from truerank.evaluation.per_instance import Ties, untied
from truerank.evaluation.resampling import Bootstrap, Randomisation
from truerank.metrics.base import Metric
from truerank.notes import by_name
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng, SamplingDesign

TestName = Literal["t", "bootstrap", "randomisation"]
"""The tests by name."""

_NOT_OFFERED = " (which is not offered, since it does not test the means: see docs/comparing.md)"
_FEW = 30
# Cochran's rule: the mean of so many values times their squared skewness is close enough to normal
_PER_SKEWNESS = 25.0


@dataclass(frozen=True)
class Comparison(Tabular):
    """All differences between recommenders: ``result["B", "A", "ndcg@10"]`` is B minus A.

    `print` it, or convert it to a dataframe, LaTeX, Markdown, TSV or JSON.
    """

    recommenders: tuple[str, ...]
    metrics: tuple[str, ...]
    differences: tuple[Difference, ...]
    level: float
    adjustment: Adjustment
    notes: tuple[str, ...]
    groups: tuple[str, ...] = ()

    def __getitem__(self, key: tuple[str, ...]) -> Difference:
        """Return one difference by recommender, baseline, metric and group.

        The metric may be left out if there is only one; the group is given if there are groups.
        """
        names = (*key, self.metrics[0]) if len(key) == 2 and len(self.metrics) == 1 else key
        if len(names) != (4 if self.groups else 3):
            wanted = "baseline, metric and group" if self.groups else "baseline and metric"
            raise InputError(f"name recommender, {wanted}, as in result['B', 'A', 'ap'], got {key!r}.")
        pair, cell = tuple(names[:2]), (str(as_metrics(names[2])[0]), *names[3:])
        for each in self.differences:
            if (each.metric, *((each.group,) if self.groups else ())) == cell:
                if (each.recommender, each.baseline) == pair:
                    return each
                if (each.baseline, each.recommender) == pair:
                    return each.reversed()
        pairs = ", ".join(sorted({f"{each.recommender} - {each.baseline}" for each in self.differences}))
        grouped = f" and the groups {self.groups}" if self.groups else ""
        raise InputError(f"the comparison has the pairs {pairs}, the metrics {self.metrics}{grouped}, got {key!r}.")

    def to_table(self) -> Table:
        """Return a row per metric and pair: both means, the difference, its interval, p-value, and the verdict."""
        adjustment = "" if self.adjustment == "none" else f" ({self.adjustment})"
        interval = f"{100 * self.level:g} % interval"
        grouped = ("group",) if self.groups else ()
        header = (
            "",
            *grouped,
            "metric",
            "mean",
            "baseline",
            "difference",
            interval,
            "relative",
            f"p{adjustment}",
            "verdict",
        )
        rows = tuple(_shown(each, grouped=bool(grouped)) for each in self.differences)
        return Table(header, rows, tuple(each.record() for each in self.differences), self.notes)


def _shown(each: Difference, *, grouped: bool) -> tuple[Cell, ...]:
    low, high = each.confidence_interval()
    return (
        Cell(f"{each.recommender} - {each.baseline}"),
        *((Cell(each.group),) if grouped else ()),
        Cell(each.metric),
        Cell(f"{each.mean:.4f}"),
        Cell(f"{each.baseline_mean:.4f}"),
        measured(each.difference, each.standard_error),
        Cell(f"[{low:.4f}, {high:.4f}]"),
        Cell(f"{each.relative:+.1%}"),
        Cell(f"{each.adjusted_p_value:.2g}"),
        Cell(each.verdict),
    )


def compare(
    ranks: Mapping[str, Ranks],
    metrics: AnyMetric | Iterable[AnyMetric],
    *,
    baseline: str | None = None,
    by: Groups | Mapping[Any, Any] | Any | None = None,
    test: TestName | PairedTest = "t",
    adjustment: Adjustment = "holm",
    level: float = 0.95,
    margin: float | None = None,
    unmatched: Unmatched = "refuse",
    ties: Ties = "expected",
    replicates: int = 10_000,
    rng: Rng = None,
) -> Comparison:
    """Return how recommenders differ, pair by pair, on the same instances.

    Parameters
    ----------
    ranks : dict of name to Ranks
        Two recommenders or more. Instances are matched by id.
    metrics : list of str, Metric or function (or one of them)
    baseline : str, optional
        The recommender that all others are compared with; all pairs by default, the later minus the earlier.
    by : dict, dataframe or Groups, optional
        Groups to compare separately, as for `truerank.evaluate`.
    test : {"t", "bootstrap", "randomisation"} or PairedTest
        Paired t-test; BCa bootstrap; random exchange of the two recommenders. docs/comparing.md says when to use which.
    adjustment : {"holm", "benjamini-hochberg", "none"}
        How p-values allow for the number of tests, which are all pairs, metrics and groups of this comparison.
    level : float
        Confidence level of intervals and verdicts.
    margin : float, optional
        A loss that does not matter; verdicts then also say who is not worse by more than it.
    unmatched : {"refuse", "drop"}
        What to do with instances that only some recommenders have. Dropped ones are counted in a note.
    ties : {"expected", "optimistic", "pessimistic", "random"}
        See `truerank.values`.
    replicates : int
        Resamples of the bootstrap, or random exchanges.
    rng : int or numpy.random.Generator, optional
        Seed of the resamples, and for ``ties="random"``.

    Notes
    -----
    Where an id occurs several times, e.g. for a user with several sessions, the user is the independent unit: errors
    are clustered by user, and users are resampled.

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
    chosen, named = as_metrics(metrics), dict(ranks)
    if len(named) < 2 or not chosen:
        raise InputError("compare needs at least two recommenders, by name, and one metric.")
    check_level(level)
    if margin is not None:
        check_margin(margin)
        one_sided(level)
    pairs = _pairs(tuple(named), baseline)
    method = _as_test(test, replicates, rng)
    task = Task(tuple(named), chosen, pairs, level, margin)
    engine = engine_of(named)
    differences = _differences if engine is None else engine.differences
    found, notes, groups = differences(named, task, method, by=by, unmatched=unmatched, ties=ties, rng=rng)
    p_values = adjusted([each.p_value for each in found], adjustment).tolist()
    final = tuple(replace(each, adjusted_p_value=p) for each, p in zip(found, p_values, strict=True))
    notes = (*notes, *_rough(final, method))
    return Comparison(tuple(named), tuple(map(str, chosen)), final, level, adjustment, notes, groups)


def _differences(
    ranks: Mapping[str, Ranks],
    task: Task,
    test: PairedTest,
    *,
    by: Groups | Mapping[Any, Any] | Any | None,
    unmatched: Unmatched,
    ties: Ties,
    rng: Rng,
) -> tuple[list[Difference], tuple[str, ...], tuple[str, ...]]:
    """Return all differences before p-values are adjusted, notes, and the names of the groups."""
    same, dropped = matched(ranks, unmatched)
    for metric in task.metrics:
        check_same_candidates({name: one.design for name, one in same.items()}, metric)
    broken = untied(same, ties, rng)
    parts = parts_by(broken, None if by is None else Groups.of(by))
    blocks = blocks_of(broken, task.metrics, parts, next(iter(same.values())).clusters)
    groups = () if by is None else tuple(part.name for part in next(iter(parts.values())))
    return tested_differences(task, blocks, test), (*dropped, *_notes(same, task.metrics)), groups


def _pairs(names: Sequence[str], baseline: str | None) -> list[tuple[int, int]]:
    if baseline is None:
        return [(later, earlier) for earlier, later in combinations(range(len(names)), 2)]
    if baseline not in names:
        raise InputError(f"`baseline` must be one of {', '.join(map(repr, names))}, got {baseline!r}.")
    base = names.index(baseline)
    return [(one, base) for one in range(len(names)) if one != base]


def _as_test(test: TestName | PairedTest, replicates: int, rng: Rng) -> PairedTest:
    if isinstance(test, PairedTest):
        return test
    tests: dict[str, PairedTest] = {
        "t": StudentTest(),
        "bootstrap": Bootstrap(replicates, rng),
        "randomisation": Randomisation(replicates, rng),
    }
    if test not in tests:
        advice = _NOT_OFFERED if str(test) in ("wilcoxon", "sign") else ""
        raise InputError(f"`test` must be one of {', '.join(map(repr, tests))}, got {test!r}{advice}.")
    return tests[test]


def check_same_candidates(designs: Mapping[str, SamplingDesign | None], metric: Metric) -> None:
    """Refuse to compare exact with sampled values, or values of different designs, unless both are unbiased."""
    if len(set(designs.values())) > 1 and not metric.unbiased_when_sampled:
        candidates = ", ".join(f"{name!r} {design or 'among all candidates'}" for name, design in designs.items())
        raise InputError(f"{metric} can only be compared among candidates chosen in one way, but it is {candidates}.")


def _notes(ranks: Mapping[str, Ranks], metrics: Sequence[Metric]) -> tuple[str, ...]:
    return by_name(
        {name: [*one.notes, *(note for each in metrics for note in each.notes(one))] for name, one in ranks.items()}
    )


def _rough(differences: Sequence[Difference], test: PairedTest) -> list[str]:
    """Return notes on numbers that are not to be trusted to the digit."""
    notes = []
    for each in differences:
        about = f"{each.group}: " if each.group else ""
        if each.n_undefined:
            count = f"{each.n_undefined} of {each.n + each.n_undefined}"
            notes.append(f"{about}{each.metric} is undefined for {count} instances")
        if each.n_units < each.n:
            notes.append(f"{about}{each.n} instances of {each.n_units} users: errors are clustered by user")
        if each.n_units < _FEW:
            notes.append(f"{about}only {each.n_units} independent instances: intervals and p-values are rough")
        elif test.assumes_normal_means and each.n_units < _PER_SKEWNESS * each.skewness**2:
            skewed = f"differences in {each.metric} are too skewed for a t-test with {each.n_units} instances"
            notes.append(f"{about}{skewed}; use test='bootstrap'")
    return list(dict.fromkeys(notes))
