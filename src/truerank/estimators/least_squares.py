"""Corrections with least bias, corrections by a point estimate of the rank, and priors of the true rank."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.checks import Floats, InputError, as_floats, check_whole, distinct_columns
from truerank.core.ranks import Ranks, check_ranks
from truerank.estimators import corrected, solvers
from truerank.estimators.corrected import Case, Correction, CorrectionTable
from truerank.estimators.rank_laws import Cells, cells, cells_at, expectation_maximisation
from truerank.metrics.definitions import Term, Terms
from truerank.sampling.laws import HYPERGEOMETRIC, Law

Prior = tuple[float, ...]

# counts at which each of several equal parts is evaluated
_POINTS = 8


def as_prior(weights: ArrayLike) -> Prior:
    """Return weights as a prior that sums to 1.

    Examples
    --------
    >>> as_prior([3, 1])
    (0.75, 0.25)
    """
    array = as_floats("weights", weights)
    if array.ndim != 1 or array.size == 0 or not np.all(np.isfinite(array)) or np.any(array < 0) or not array.sum():
        raise InputError("a prior must be a list of weights, none negative and not all zero.")
    return tuple((array / array.sum()).tolist())


def prior_counts(prior: Prior, n_irrelevant: int) -> Floats:
    """Return the weight of each count 0..n_irrelevant."""
    places = (np.arange(n_irrelevant + 1) + 0.5) / (n_irrelevant + 1)
    return np.array(prior)[(places * len(prior)).astype(np.int64)]


def prior_notes(
    used: Correction, plain: Correction, parts: tuple[Terms, ...], ranks: Ranks, name: str
) -> tuple[str, ...]:
    """Return a note if a correction changes by more than twice the error of either when its prior is left out."""
    (mean, error), (other, without) = (_mean_and_error(one, parts, ranks, name) for one in (used, plain))
    if abs(mean - other) <= 2 * max(error, without):
        return ()
    return (f"the prior drives {name}: without it the result is {other:.4f}, more than twice its error away",)


def _mean_and_error(correction: Correction, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[float, float]:
    """Return the mean over instances, ties in favour of relevant items, and its standard error."""
    added = np.zeros(ranks.above.size)
    for part in correction.terms(parts, ranks, name):
        values = part.term.term(ranks.rank, ranks.i, ranks.item_n_relevant, part.n)
        added += values if part.weight is None else values * part.weight
    sums = np.bincount(ranks.instance, added, minlength=len(ranks))[ranks.n_relevant > 0]
    return float(sums.mean()), float(sums.std() / np.sqrt(sums.size))


def learn_prior(ranks: Ranks, *, parts: int | None = None, iterations: int = 100) -> Prior:
    """Return a prior learned from ranks, exact or sampled, of this recommender or a similar one.

    From exact ranks it is the share of relevant items in each part of the catalogue, with one added to
    every part. From sampled ones it is the maximum-likelihood distribution, approached by EM that is
    stopped early (Jin et al., AAAI 2021).

    Parameters
    ----------
    ranks : Ranks
        All relevant items count, whatever their place in their instance.
    parts : int, optional
        Equal parts into which the catalogue is divided. None: single ranks at the top, then parts that grow with the
        rank, and the prior has a weight for each count of the largest catalogue.
    iterations : int
        Steps of EM; more of them fit the sample, including its noise, more closely.

    Examples
    --------
    >>> import truerank as tr
    >>> prior = tr.estimators.learn_prior(tr.Ranks.from_ranks([1, 2, 90], n=100), parts=2)
    >>> [round(share, 2) for share in prior]
    [0.6, 0.4]
    """
    check_ranks(ranks)
    check_whole("iterations", iterations)
    if parts is not None:
        check_whole("parts", parts)
    largest = int(ranks.item_irrelevant.max(initial=0))
    if parts is None:
        size, within = largest + 1, cells(largest)
    else:
        size = parts * _POINTS
        within = cells_at(np.arange(parts) * _POINTS, size - 1)
    exact = ranks.design is None
    shares = _shares(ranks, within, size) if exact else _learned(ranks, within, size, iterations)
    return as_prior(shares if parts is not None else np.repeat(shares / within.sizes, within.sizes))


def _shares(ranks: Ranks, within: Cells, size: int) -> Floats:
    place = (ranks.above + ranks.tied / 2 + 0.5) / (ranks.item_irrelevant + 1)
    part = np.searchsorted(within.starts, np.floor(place * size), side="right") - 1
    return np.bincount(part, minlength=len(within)).astype(np.float64) + 1.0


def _learned(ranks: Ranks, within: Cells, size: int, iterations: int) -> Floats:
    """Run EM from equal shares; the likelihood of a part is the mean over some counts in it."""
    design = corrected.require_design(ranks, "learning a prior")
    columns = (ranks.above, ranks.item_draws, ranks.item_irrelevant)
    first, which = distinct_columns(*columns)
    above, drawn, n_irrelevant = (column[first, None, None] for column in columns)
    # the points are those of a catalogue with `size` counts; these are the counts of each catalogue at the same places
    counts = np.floor((within.points + 0.5) / size * (n_irrelevant + 1)).astype(np.int64)
    log = design.log_likelihood(above, drawn, counts, n_irrelevant)
    likelihood = np.exp(log - log.max(axis=(1, 2), keepdims=True)).mean(axis=2)
    weight = np.bincount(which, minlength=first.size).astype(np.float64)
    return expectation_maximisation(likelihood, weight, within.sizes / size, iterations)


@dataclass(frozen=True)
class _LeastBias(Correction):
    prior: Prior | None = field(default=None, metadata={"only_in_code": True})

    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        if term.shape == "affine":
            return solvers.unbiased_affine(case.count_term(term), case.N, case.m)
        return self._solve(problem_of(term, law, case, self.prior))

    def tables(self, term: Term, law: Law, cases: list[Case]) -> list[Floats]:
        """Set up all problems with the same m at once, where the law is diagonal and the prior uniform."""
        if self.prior is not None or law is not HYPERGEOMETRIC or term.shape == "affine":
            return super().tables(term, law, cases)

        def solve(batch: solvers.Batch) -> Iterator[Floats]:
            return (self._solve(task).values for task in solvers.least_squares_problems(batch))

        return solvers.solved_together(term, cases, solve)

    @abstractmethod
    def _solve(self, task: solvers.Problem) -> CorrectionTable:
        """Solve the problem of a metric that is not affine."""


@dataclass(frozen=True)
class LeastSquares(_LeastBias):
    """Correction with the least squared bias over the prior (eq. 21 and 22); often ill-conditioned, as a note says."""

    name = "ls"

    def _solve(self, task: solvers.Problem) -> CorrectionTable:
        return solvers.minimal_bias(task)

    def notes(self, name: str, term: Term, law: Law, case: Case) -> tuple[str, ...]:
        table = corrected.cached_table(self, term, law, case)
        if not table.ill_conditioned:
            return ()
        return (
            f"{name} is ill-conditioned: of the {table.values.size} values of its table the sample determines "
            f"{table.determined}; prefer {name.partition('~')[0]}~bv(0.01)",
        )


@dataclass(frozen=True)
class ConstrainedLeastSquares(_LeastBias):
    """Correction with the least squared bias among tables that are monotone, like the metric, and never negative."""

    name = "cls"

    def _solve(self, task: solvers.Problem) -> CorrectionTable:
        return solvers.constrained(task)


corrected.CORRECTIONS.add_built_in(LeastSquares, ConstrainedLeastSquares)


def problem_of(term: Term, law: Law, case: Case, prior: Prior | None) -> solvers.Problem:
    """Return the least-squares problem of a case."""
    end = case.last_count(term)
    return solvers.problem(
        case.count_term(term),
        case.N,
        case.m,
        law,
        prior=None if prior is None else prior_counts(prior, case.N),
        breaks=() if end is None else (end + 1,),
        smooth=term.shape != "any",
    )


@dataclass(frozen=True)
class RankEstimate(Correction):
    """The metric at an unbiased estimate of the rank (eq. 20), rounded down as in the paper, or interpolated."""

    name = "rank"
    interpolate: bool = False

    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        return CorrectionTable(rank_estimate(case.count_term(term), case.N, case.m, interpolate=self.interpolate))

    def tables(self, term: Term, law: Law, cases: list[Case]) -> list[Floats]:
        """Compute each, which takes less than keeping it."""
        return [self.solve(term, law, case).values for case in cases]


corrected.CORRECTIONS.add_built_in(RankEstimate)


def rank_estimate(term: corrected.CountTerm, N: int, m: int, *, interpolate: bool = False) -> Floats:
    """Metric at the unbiased estimate N h / m of the count (eq. 20).

    The estimate is rounded down, as in the paper, or f is interpolated linearly between its
    neighbours.

    Examples
    --------
    >>> rank_estimate(lambda g: 1 / (g + 1), N=9, m=2)
    array([1. , 0.2, 0.1])
    >>> rank_estimate(lambda g: 1 / (g + 1), N=9, m=2, interpolate=True).round(4)
    array([1.    , 0.1833, 0.1   ])
    """
    # Whole-number division: N h / m in floating point could fall just below an integer.
    whole = np.int64 if N * m < 2**63 else np.object_  # Python integers where 64 bits are too few
    below, remainder = np.divmod(N * np.arange(m + 1).astype(whole), m)
    values = np.asarray(term(below.astype(np.float64)), dtype=np.float64)
    if not interpolate:
        return values
    above = np.asarray(term(np.minimum(below + 1, N).astype(np.float64)), dtype=np.float64)
    return values + remainder / m * (above - values)
