"""What to do about a sampled metric: which correction, how many candidates, or all of them."""

from __future__ import annotations

import numpy as np

from truerank.arrays import Ints
from truerank.corrections.assumptions import ASSUMPTIONS, Assumption
from truerank.corrections.base import Case
from truerank.corrections.outlook import best_gamma, enough_draws, is_determined
from truerank.metrics.base import Metric, Term
from truerank.ranking.ranks import Ranks
from truerank.sampling.laws import Law


def advice(metric: Metric, ranks: Ranks) -> tuple[str, ...]:
    """Return a note on an uncorrected metric of sampled ranks, with what would be better for these numbers.

    Examples
    --------
    >>> import truerank as tr
    >>> advice(tr.metric("recall@10"), tr.Ranks.from_sampled([1, 5], m=100, n=40_000))[0]  # doctest: +ELLIPSIS
    'recall@10 among 100 sampled candidates is not recall@10: ... 100 of 39999 candidates are too few for any ...'
    """
    if not metric.biased(ranks):
        return ()
    filled = ranks.n_relevant > 0
    note = f"{metric} among {_spread(ranks.draws[filled])} sampled candidates is not {metric}"
    return (f"{note}: its bias differs between recommenders; {_better(metric, ranks)}",)


def _spread(numbers: Ints) -> str:
    """Return the only number, or the least and the largest."""
    ends = np.unique(numbers)
    return " to ".join(map(str, ends[[0, -1]] if ends.size > 1 else ends))


def _better(metric: Metric, ranks: Ranks) -> str:
    """Return what is better than an uncorrected metric."""
    case, design = _typical(ranks), ranks.design
    if case is None or design is None or not design.keeps_unbiased:
        return "rank all candidates"
    term, law = metric.terms(ranks)[0].term, design.law("advice")
    if is_determined(term, law, case):
        return f"rank all candidates, or use {metric}~bv({best_gamma(term, law, case, len(ranks)):g}) and its interval"
    few = f"{case.m} of {case.N} candidates are too few for any correction, whatever the distribution of the ranks"
    return f"{few}; {_more(term, law, case)}"


def remedy(metric: Metric, ranks: Ranks, assumption: Assumption) -> str:
    """Return what would tell a metric that the sample does not determine, as the end of a sentence.

    Examples
    --------
    >>> import truerank as tr
    >>> sampled = tr.Ranks.from_sampled([1, 5], m=100, n=3_541)
    >>> remedy(tr.metric("recall@10"), sampled, "falling")
    "; rank all candidates, or sample at least about 1600, or try assume='smooth'"
    """
    case, design = _typical(ranks), ranks.design
    if case is None or design is None:
        return ""
    term = metric.terms(ranks)[0].term
    more = _more(term, design.law("advice"), case) if ranks.drawn is None else _more_hits(term, ranks)
    stronger = ASSUMPTIONS[ASSUMPTIONS.index(assumption) + 1 :]
    helps = stronger and (ranks.drawn is None or design.stops(ranks) is not None)
    return f"; {more}" + (f", or try assume={stronger[0]!r}" if helps else "")


def _more(term: Term, law: Law, case: Case) -> str:
    enough = enough_draws(term, law, case)
    return "rank all candidates" if enough is None else f"rank all candidates, or sample at least about {enough}"


def _more_hits(term: Term, ranks: Ranks) -> str:
    """Return what would tell more than draws that ended by what they showed."""
    deepest = term.cutoff(ranks.n_relevant)
    if deepest is None:
        return "rank all candidates"
    return f"rank all candidates, or draw by inverse({int(deepest.max())}), which decides it"


def _typical(ranks: Ranks) -> Case | None:
    """Return the case of one relevant item with the median numbers of candidates and draws; None if there is none."""
    filled = ranks.n_relevant > 0
    if not filled.any() or ranks.n_catalogue is None:
        return None
    N = int(np.median((ranks.n_catalogue - ranks.n_relevant)[filled]))
    return Case(1, 1, N + 1, min(int(np.median(ranks.draws[filled])), N))
