"""How likely a sampled count is for each count among all candidates: one likelihood for every uniform design."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

from truerank.arrays import AnyArray, Floats, Ints, frozen
from truerank.caching import cached
from truerank.sampling.designs import Counts

# logarithms of factorials are looked up below this number
_TABLE = 1 << 22


def without_replacement(above: Counts, drawn: Counts, count: AnyArray, n_irrelevant: Counts) -> Floats:
    """Return the log likelihood of `count` candidates above, of `n_irrelevant`, up to a constant per observation.

    Of t candidates drawn one by one without replacement, j stand above. Any rule that stops on what has been seen gives
    the likelihood [a! / (a-j)!] [(N-a)! / (N-a-t+j)!], so a fixed number of draws, inverse sampling and caps differ in
    t and j alone. Arguments broadcast; impossible counts have -inf.

    Examples
    --------
    >>> likely = np.exp(without_replacement(1, 2, np.arange(5), 4))
    >>> (likely / likely.sum()).round(2).tolist()
    [0.0, 0.3, 0.4, 0.3, 0.0]
    """
    left_above, left_below = count - above, n_irrelevant - count - (drawn - above)
    possible = (left_above >= 0) & (left_below >= 0)
    largest = int(np.max(n_irrelevant, initial=0))
    beyond = (count, left_above, n_irrelevant - count, left_below)
    one, two, three, four = (_log_factorial(np.clip(number, 0, largest), largest) for number in beyond)
    return np.where(possible, one - two + three - four, -np.inf)


def _log_factorial(numbers: Ints, largest: int) -> Floats:
    """Return the logarithms of the factorials of numbers up to the largest; looking them up is faster."""
    return _table(1 << largest.bit_length())[numbers] if largest < _TABLE else gammaln(numbers + 1.0)


@cached
def _table(size: int) -> Floats:
    return frozen(gammaln(np.arange(size) + 1.0))


def with_replacement(above: Counts, drawn: Counts, count: AnyArray, n_irrelevant: Counts) -> Floats:
    """Return the same for candidates drawn with replacement, (a/N)^j (1 - a/N)^(t-j).

    Examples
    --------
    >>> np.exp(with_replacement(1, 2, np.arange(3), 2)).tolist()
    [0.0, 0.25, 0.0]
    """
    share = np.clip(count / np.asarray(n_irrelevant, dtype=np.float64), 0.0, 1.0)
    log = xlogy(above, share) + xlogy(np.asarray(drawn) - above, 1.0 - share)
    return np.where(np.asarray(count) <= n_irrelevant, log, -np.inf)
