"""Corrected metrics: ``recall@10~bv(0.1)`` estimates the metric of the exact rank from a sampled rank.

Because a metric is a sum over its relevant items, correcting each term corrects the metric, however they depend on each
other (for one relevant item this is section 5 of Krichene & Rendle). The module then defines estimators, including
corrections, which look up the sampled count of an item in a table; and what may be assumed about exact ranks.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypeVar, cast, get_args, overload

import numpy as np

from truerank.core import checks
from truerank.core.caching import cached
from truerank.core.checks import Bools, Floats, InputError, Ints, as_number, distinct_columns, frozen
from truerank.core.ranks import Ranks
from truerank.core.samples import DESIGNS, Design, Sample
from truerank.core.text_forms import Named, Registry
from truerank.metrics.definitions import METRICS, FunctionMetric, Metric, Term, TermFunction, Terms, WrittenMetric

if TYPE_CHECKING:
    from truerank.sampling.designs import AnyDesign, SamplingDesign
    from truerank.sampling.laws import Law


@dataclass(frozen=True)
class Corrected(Metric):
    """A metric, estimated from sampled ranks by a correction; written ``metric~correction``.

    Its values are estimates: single ones may be negative or above 1, but only their mean matters.
    """

    metric: Metric
    correction: Estimator

    @property
    def lower_is_better(self) -> bool:
        return self.metric.lower_is_better

    @property
    def estimated(self) -> Metric:
        return self.metric

    def biased(self, ranks: Ranks) -> bool:
        return False

    def unbiased(self, ranks: Ranks) -> bool:
        return self.correction.unbiased(ranks)

    @property
    def pools_instances(self) -> bool:
        return self.correction.pools_instances

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        return self.correction.terms(self.metric.terms(ranks), ranks, str(self))

    def hidden_error(self, ranks: Ranks) -> float:
        return self.correction.hidden_error(self.metric.terms(ranks), ranks)

    def attainable(self, ranks: Ranks) -> tuple[float, float] | None:
        return self.correction.attainable(self.metric.terms(ranks), ranks)

    def notes(self, ranks: Ranks) -> tuple[str, ...]:
        if not np.any(ranks.n_relevant):
            return ()
        return self.correction.caveats(self.metric.terms(ranks), ranks, str(self))

    def __str__(self) -> str:
        return f"{self.metric}~{self.correction}"


AnyMetric = str | Metric | TermFunction
"""A metric, its text form, or the function of its term."""


def metric(text: AnyMetric) -> Metric:
    """Return the metric that a text names; metrics pass through, functions are wrapped.

    Case is ignored, ``_`` and ``-`` are the same, and other names used in the field are recognised:
    ``map``, ``mrr``, ``hit_rate@10``, ``hits@10``, ``success@5``, ``p@10``, ``r@10``, and trec_eval's
    ``P_10``, ``map_cut_10``, ``ndcg_cut_10``, ``recip_rank``. A correction of sampled ranks follows a ``~``.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.metric("nDCG@10")
    NDCG(k=10, form='achievable')
    >>> str(tr.metric("P_10")), str(tr.metric("map")), str(tr.metric("RBP(0.80)"))
    ('precision@10', 'ap', 'rbp(0.8)')
    >>> tr.metric("MARp@5,10")
    MARp(k=(5, 10))
    >>> tr.metric("recall@10~bv(0.1)")
    Corrected(metric=Recall(k=10, divisor='relevant'), correction=BiasVariance(gamma=0.1, prior=None))
    >>> tr.metric("ndgc@10")
    Traceback (most recent call last):
    ...
    truerank.InputError: unknown metric 'ndgc@10'; did you mean 'ndcg@10'?
    """
    if isinstance(text, Metric):
        return text
    if callable(text):
        return FunctionMetric.of(text)
    if not isinstance(text, str):
        raise InputError(f"a metric is a text such as 'ndcg@10', a Metric or a function, got {text!r}.")
    base, corrected, how = text.partition("~")
    return Corrected(METRICS.read(base), CORRECTIONS.read(how)) if corrected else METRICS.read(text)


def as_metrics(texts: AnyMetric | Iterable[AnyMetric]) -> tuple[Metric, ...]:
    """Return the metrics named by one text, or by each of several; the same one twice, as by "rr" and "mrr", is one."""
    if isinstance(texts, str | Metric) or callable(texts):
        texts = [texts]
    return checks.distinct(metric(text) for text in checks.as_list("metrics", texts, "texts or metrics"))


# with a cap below this share of the candidates the top is extrapolated; seen on MovieLens 1M and Gowalla
_SHALLOW = 16


def recommended(metric: Metric, ranks: Ranks) -> Metric:
    """Return the metric, with the recommended estimator where the sampled counts alone are meaningless.

    That is the case under inverse sampling, where nearly every item has the same number above it. The estimator is the
    unbiased one if there is one, else the smooth one. But where a cap ended draws below a sixteenth of the candidates,
    the top is extrapolated, and a monotone law does that better. Metrics of other ranks, and metrics that already have
    an estimator, are returned unchanged.

    Examples
    --------
    >>> import truerank as tr
    >>> sampled = tr.InverseSampling(2).draw(tr.Ranks.from_ranks([3, 40, 500], n=1_000), rng=1)
    >>> [str(recommended(tr.metric(name), sampled)) for name in ("ap", "ndcg@10", "ndcg@10~monotone")]
    ['ap~unbiased', 'ndcg@10~smooth', 'ndcg@10~monotone']
    >>> sampled = tr.InverseSampling(2, most=50).draw(tr.Ranks.from_ranks([3, 40, 500], n=1_000), rng=1)
    >>> str(recommended(tr.metric("ap"), sampled))
    'ap~monotone'
    """
    if ranks.design is None or not ranks.design.needs_estimator or metric.estimated is not metric:
        return metric
    ended = capped(ranks)
    if not ended.any() and all(has_unbiased_form(part.term, ranks) for part in metric.terms(ranks)):
        return Corrected(metric, CORRECTIONS.read("unbiased"))
    if ranks.design.unequal_chances:
        return Corrected(metric, CORRECTIONS.read("possible"))
    deepest = int(ranks.item_draws[ended].max(initial=0))
    shallow = ended.any() and _SHALLOW * deepest < np.median(ranks.item_irrelevant)
    return Corrected(metric, CORRECTIONS.read("monotone" if shallow else "smooth"))


def capped(ranks: Ranks) -> Bools:
    """Whether the draws for each relevant item were ended before enough candidates stood above or all were drawn."""
    hits = getattr(ranks.design, "hits", 0)
    return (ranks.above < hits) & (ranks.item_draws < ranks.item_irrelevant)


def has_unbiased_form(term: Term, ranks: Ranks) -> bool:
    """Whether a term has an unbiased estimate: where the design decides the top, or in closed form.

    A closed form needs draws that end as soon as `hits` candidates stand above.
    """
    from truerank.sampling.designs import InverseSampling, as_design

    design, cutoff = as_design(cast("Design", ranks.design)), term.cutoff(ranks.n_relevant)
    if design.unequal_chances:
        return term.shape == "affine" and ranks.estimated is not None
    if cutoff is not None:
        return design.decides_below > 0 and bool(np.all(cutoff <= design.decides_below))
    if not isinstance(design, InverseSampling) or design.whole:
        return False
    return term.shape == "reciprocal" or (term.shape == "affine" and design.hits > 1)


def correction_table(metric: str | Corrected, design: AnyDesign, *, n: int, i: int = 1, n_relevant: int = 1) -> Floats:
    """Return the m + 1 values of a corrected metric, for sampled ranks i, i + 1, ..., i + m.

    Parameters
    ----------
    metric : str or Corrected
        For instance ``"recall@10~bv(0.1)"``.
    design : SamplingDesign, str or int
        How candidates are sampled; an int is the number sampled uniformly.
    n : int
        Candidates before sampling.
    i, n_relevant : int
        Place of the relevant item among the relevant ones, from the top, and their number.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.estimators.correction_table("recall@10~rank", 4, n=21).tolist()
    [1.0, 1.0, 0.0, 0.0, 0.0]
    >>> tr.estimators.correction_table("ap~cls", 4, n=21).round(3).tolist()
    [0.725, 0.036, 0.036, 0.036, 0.036]
    """
    from truerank.sampling.designs import as_design

    (chosen,) = as_metrics(metric)
    if not isinstance(chosen, Corrected):
        raise InputError(f"only corrected metrics have a table, got {chosen}; write {chosen}~bv(0.1).")
    if not 1 <= as_number(i) <= as_number(n_relevant) <= as_number(n):
        raise InputError(f"`i` must lie in 1..n_relevant and `n_relevant` in 1..n, got {i}, {n_relevant} and {n}.")
    drawn = as_design(design)
    ranks = as_sampled(Ranks.from_ranks([range(1, n_relevant + 1)], n=n), drawn)
    terms = terms_of_counts(chosen, ranks)
    if len(terms) > 1 or terms[0].weight is not None:
        raise InputError(f"{chosen} depends on grades and has no single table; only plain metrics have one.")
    return counted(terms[0], ranks, np.array([i - 1]))[0]


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
New = TypeVar("New", bound=type[Named])


@overload
def register(new: New) -> New: ...
@overload
def register(new: TermFunction) -> FunctionMetric: ...
def register(new: New | TermFunction) -> New | FunctionMetric:
    """Register your own class by its name, so that text forms and files can name it; a class decorator.

    It may be a metric (a `truerank.metrics.PlainMetric` or `GradedMetric`), a correction (a
    `truerank.estimators.Estimator`) or a `truerank.SamplingDesign`. A function f(rank, i, n_relevant, n) becomes a
    metric: what the i-th relevant item from the top adds at that rank. It gets and returns NumPy arrays, and its name
    becomes the metric's.

    Examples
    --------
    >>> import truerank as tr
    >>> @tr.register
    ... def inverse_square(rank, i, n_relevant, n):
    ...     return 1 / rank**2 / n_relevant
    >>> tr.values(tr.Ranks.from_ranks([1, 2], n=9), "inverse-square").tolist()
    [1.0, 0.25]
    """
    entry: Any = new if isinstance(new, type) or not callable(new) else FunctionMetric.of(new)
    kind = entry if isinstance(entry, type) else type(entry)
    registries: dict[type[Any], Registry[Any]] = {WrittenMetric: METRICS, Estimator: CORRECTIONS, Design: DESIGNS}
    for base, registry in registries.items():
        if issubclass(kind, base):
            registry.add(entry)
            return entry
    raise InputError(f"only metrics, corrections, sampling designs and functions can be registered, got {new!r}.")


CORRECTIONS: Registry[Estimator] = Registry(
    "correction",
    "'~bv(0.1)', '~cls' or '~rank(interpolate)'",
    homes=tuple(
        f"truerank.estimators.{home}" for home in ("bias_variance", "least_squares", "literature", "pooled", "unbiased")
    ),
)
"""Every correction by its name."""


@dataclass(frozen=True)
class Estimator(Named, ABC):
    """A way to estimate the terms of a metric from all sampled ranks of an evaluation.

    To add one, write a subclass that is a frozen dataclass with a `name` and `terms`, and decorate it with
    `truerank.register`; ``metric~name(arguments)`` then uses it. If the estimate for an instance depends on
    that instance alone, subclass `truerank.estimators.Correction` instead.
    """

    @property
    def pools_instances(self) -> bool:
        """Whether the estimate of an instance depends on the other instances."""
        return False

    def unbiased(self, ranks: Ranks) -> bool:
        """Whether the expectation of estimates from ranks sampled like these is the exact metric."""
        return False

    @abstractmethod
    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        """Return terms that estimate those of exact ranks.

        Parameters
        ----------
        parts : tuple of Terms
            Terms of the metric on exact ranks.
        ranks : Ranks
            Sampled ranks, with their design.
        name : str
            What messages call the corrected metric.
        """

    def hidden_error(self, parts: tuple[Terms, ...], ranks: Ranks) -> float:
        """Return the part of the mean's standard error that the spread of the estimates does not show.

        It is 0 if each instance is estimated on its own.
        """
        return 0.0

    def attainable(self, parts: tuple[Terms, ...], ranks: Ranks) -> tuple[float, float] | None:
        """Return the smallest and largest estimates that an instance could have; None: as for exact ranks."""
        return None

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        """What to know before trusting the corrected metric called `name`."""
        return ()


@dataclass(frozen=True)
class Correction(Estimator):
    """A way to turn the sampled count of a relevant item into an estimate of its term of a metric.

    To add one, write a subclass that is a frozen dataclass with a `name` and `solve`, and decorate it with
    `truerank.register`; ``metric~name(arguments)`` then uses it.

    Examples
    --------
    A correction that multiplies the sampled count, as some do:

    >>> from dataclasses import dataclass
    >>> import numpy as np, truerank as tr
    >>> @tr.register
    ... @dataclass(frozen=True)
    ... class ScaledRank(tr.estimators.Correction):
    ...     name = "scaled-rank"
    ...     def solve(self, term, law, case):
    ...         counts = np.round(np.arange(case.m + 1) * case.N / case.m)
    ...         return tr.estimators.CorrectionTable(case.count_term(term)(counts))
    >>> tr.estimators.correction_table("ap~scaled-rank", 2, n=11).round(3).tolist()
    [1.0, 0.167, 0.091]
    """

    @abstractmethod
    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        """Return the m + 1 values for h = 0..m, and how reliable they are."""

    def tables(self, term: Term, law: Law, cases: list[Case]) -> list[Floats]:
        """Return the values for many cases; override it where they can be solved together."""
        return [cached_table(self, term, law, case).values for case in cases]

    def expected_sums(self, term: Term, law: Law, items: CountedItems, largest: int) -> SumsBySize | None:
        """Return a function from sample sizes up to the largest to the sums of the expected values of all items.

        It returns NaN for sizes without a closed form; None: there is none at all.
        """
        return None

    def notes(self, name: str, term: Term, law: Law, case: Case) -> tuple[str, ...]:
        """What to know before trusting the corrected metric called `name`; `case` is one of its cases."""
        return ()

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        """Return the terms with their tables; weights don't depend on what was sampled."""
        found, which = _cases(ranks)
        law = _law(ranks, name)
        return tuple(Terms(TableTerm(self, part.term, law, found), which, part.weight) for part in parts)

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        at = int(np.argmax(ranks.n_relevant > 0))
        first = _cases(ranks[at : at + 1])[0][0]
        return self.notes(name, parts[0].term, _law(ranks, name), first)


def _law(ranks: Ranks, name: str) -> Law:
    return require_design(ranks, name).law(name)


def require_design(ranks: Ranks, name: str) -> SamplingDesign:
    """Return the design of sampled ranks, or refuse exact ones."""
    if ranks.design is None:
        plain = name.partition("~")[0]
        raise InputError(f"{name} corrects sampled ranks, but these ranks are exact; use {plain}.")
    from truerank.sampling.designs import as_design

    return as_design(ranks.design)


def fitted(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Cache with the ranks what a function of them returns; its other arguments must be hashable."""

    @functools.wraps(function)
    def kept(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        (ranks,) = (each for each in args if isinstance(each, Ranks))
        key = (function.__qualname__, *(each for each in args if each is not ranks))
        return ranks.fits.get(key, lambda: function(*args, **kwargs))

    return kept


@fitted
def _cases(ranks: Ranks) -> tuple[tuple[Case, ...], Ints]:
    """Return the distinct cases, and the case of each relevant item."""
    per_item = [ranks.i, ranks.item_n_relevant, ranks.n_catalogue[ranks.instance], ranks.draws[ranks.instance]]
    first, which = distinct_columns(*per_item)
    columns = (numbers[first].tolist() for numbers in per_item)
    return tuple(Case(*case) for case in zip(*columns, strict=True)), which


@dataclass(frozen=True)
class TableTerm(Term):
    """Looks up a sampled rank in the table of its case; the argument n of a term is here the number of the case."""

    correction: Correction
    base: Term
    law: Law
    cases: tuple[Case, ...]

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return _tables(self)[n, rank - i]

    def extremes(self, *, upper: bool) -> Floats:
        """Return the largest or smallest value in the table of each case."""
        return np.nanmax(_tables(self), axis=1) if upper else np.nanmin(_tables(self), axis=1)


@dataclass(frozen=True, eq=False)
class ValueTerm(Term):
    """Gives each relevant item a value of its own; the argument n of a term is here the place of the item."""

    values: Floats

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return self.values[n]


@cached
def _tables(term: TableTerm) -> Floats:
    """Return a row of m + 1 values for each case, padded with NaN where others have a larger m.

    Recommenders that are compared share their cases, hence these tables.
    """
    found = term.correction.tables(term.base, term.law, list(term.cases)) if term.cases else []
    rows = np.full((len(found), max((table.size for table in found), default=1)), np.nan)
    for row, table in zip(rows, found, strict=True):
        row[: table.size] = table
    return frozen(rows)


@cached
def cached_table(correction: Correction, term: Term, law: Law, case: Case) -> CorrectionTable:
    """Return the table of a case, computed once."""
    return correction.solve(term, law, case)


SumsBySize = Callable[[Ints], Floats]
"""From numbers of draws to sums over all items."""

CountTerm = Callable[[Floats], Floats]
"""f(g): what a relevant item adds to the metric when g irrelevant candidates stand above it."""


class Case(NamedTuple):
    """The i-th of `n_relevant` relevant items of an instance with n candidates, of which m were sampled."""

    i: int
    n_relevant: int
    n: int
    m: int

    @property
    def N(self) -> int:  # noqa: N802 (the paper's letter)
        """Irrelevant candidates that the sample is drawn from."""
        return self.n - self.n_relevant

    def last_count(self, term: Term) -> int | None:
        """Return the largest count above the item at which it still adds something; None: there is no cut-off."""
        cutoff = term.cutoff(np.array([self.n_relevant]))
        return None if cutoff is None else int(cutoff[0]) - self.i

    def count_term(self, term: Term) -> CountTerm:
        """Return what the item adds as a function of the irrelevant candidates above it."""
        i, n_relevant, n = (np.array([number]) for number in self[:3])

        def at(g: Floats) -> Floats:
            return term.term(cast("Ints", np.asarray(g) + self.i), i, n_relevant, n)

        return at


class CountedItems(NamedTuple):
    """Relevant items: their distinct cases, and for each item its case, the candidates above and tied, and its weight.

    `shown` returns, for a number of draws, how many items of each case have h of the draws above them, on average.
    """

    cases: list[Case]
    which: Ints
    above: Ints
    tied: Ints
    weight: Floats
    shown: Callable[[int], Floats]


@dataclass(frozen=True, eq=False)
class CorrectionTable:
    """The table of one case and how reliable it is.

    Attributes
    ----------
    values : ndarray, shape (m + 1,)
        Corrected contribution for h = 0..m. NaN where the prior makes h impossible.
    determined : int, optional
        Directions of the table that the data determine; None: all m + 1.
    condition : float
        Factor by which relative errors in the law may be magnified.
    """

    values: Floats
    determined: int | None = None
    condition: float = 1.0

    @property
    def ill_conditioned(self) -> bool:
        """Whether many tables fit equally well in double precision; this is the smallest of them."""
        return (self.determined or len(self.values)) < len(self.values) or self.condition > 1e8


def as_sampled(ranks: Ranks, design: SamplingDesign, n: int | None = None) -> Ranks:
    """Return exact ranks as sampled ranks with nothing above: everything that tables depend on, except the counts.

    Candidates before sampling are those of the ranks, or `n` for all instances.
    """
    nothing = np.zeros_like(ranks.above)
    sampled = ranks.sampled(design, np.full(len(ranks), design.size), above=nothing, tied=nothing)
    return sampled if n is None else replace(sampled, sample=Sample(design, n))


def terms_of_counts(metric: Metric, shown: Ranks) -> tuple[Terms, ...]:
    """Return the terms of a metric that depend on the sampled counts of the item alone, or refuse it."""
    if metric.pools_instances:
        raise InputError(f"{metric} has no table: its values depend on all instances together.")
    return metric.terms(shown)


def counted(terms: Terms, sampled: Ranks, items: Ints) -> Floats:
    """Return what these relevant items add at each sampled count: a row of m + 1 values per item, without weights."""
    counts = np.arange(int(sampled.draws.max(initial=0)) + 1)
    per_item = (sampled.i, sampled.item_n_relevant, terms.n)
    i, n_relevant, n = (np.repeat(numbers[items][:, None], counts.size, axis=1) for numbers in per_item)
    return np.asarray(terms.term.term(counts + i, i, n_relevant, n), dtype=np.float64)


Assumption = Literal["nothing", "falling", "smooth"]
"""What may be assumed about exact ranks, among the top tenth of the candidates, for the first relevant item of an
instance. "falling": a deeper rank is never more likely. "smooth": in addition, a rank twice as deep is at least a
quarter as likely, whether probabilities fall in steps or as 1 / rank^2. Each includes the one before."""

ASSUMPTIONS: tuple[Assumption, ...] = get_args(Assumption)
"""From the weakest to the strongest."""

ASSUMING: dict[Assumption, str] = {
    "nothing": "whatever the distribution of the ranks",
    "falling": "if deeper ranks are never more likely among the top tenth",
    "smooth": "if probabilities of ranks fall among the top tenth, to no less than a quarter at twice the rank",
}
"""The assumptions in words, for notes."""

LEAST_AT_TWICE = 0.25
"""Least probability of a rank twice as deep, relative to that of the rank, if probabilities are smooth."""


def check_assumption(assume: object) -> None:
    """Refuse an unknown assumption."""
    checks.check_choice("assume", assume, ASSUMPTIONS)


def strongest(*assumptions: Assumption) -> Assumption:
    """Return the assumption that includes all others."""
    return max(assumptions, key=ASSUMPTIONS.index)
