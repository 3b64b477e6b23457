"""Draw distinct candidates for many users at once, by rejection."""

from __future__ import annotations

import numpy as np

from truerank.arrays import Bools, Ints
from truerank.sampling.pools import Pool

# users for whom this part of the items is left out or drawn are drawn for one by one
_DENSE = 0.5


def distinct_items(
    pool: Pool, users: Ints, counts: Ints, rng: np.random.Generator, taken: Ints | None = None
) -> tuple[Ints, Ints]:
    """Return candidates of users, each equally likely, none twice: whose they are, and which items.

    Parameters
    ----------
    pool : Pool
    users : array of int, ascending
        Which users of the pool.
    counts : array of int, one per user
        How many to draw, at most as many as are left.
    rng : numpy.random.Generator
    taken : array of int, optional
        Keys (user times n_items plus item, ascending) of candidates that have been drawn before.

    Returns
    -------
    tuple of two arrays
        User by user in ascending order; the items of a user are in ascending order too, not in one of chance.

    Examples
    --------
    >>> pool = Pool(6, [np.array([1, 4]), np.array([0])])
    >>> owners, items = distinct_items(pool, np.array([0, 1]), np.array([4, 2]), np.random.default_rng(0))
    >>> owners.tolist(), items[:4].tolist()
    ([0, 0, 0, 0, 1, 1], [0, 2, 3, 5])
    """
    blocked = [pool.excluded_keys] if taken is None else [pool.excluded_keys, taken]
    used = pool.n_items - pool.sizes[users] + counts + _counts(blocked[1:], users, pool.n_items)
    dense = used > _DENSE * pool.n_items
    drawn = _rejected(pool.n_items, users[~dense], counts[~dense], blocked, rng)
    single = [_chosen(pool.n_items, user, count, blocked, rng) for user, count in _pairs(users, counts, dense)]
    keys = np.sort(np.concatenate([drawn, *single])) if single else drawn
    return np.divmod(keys, pool.n_items)


def _pairs(users: Ints, counts: Ints, which: Bools) -> list[tuple[int, int]]:
    return list(zip(users[which].tolist(), counts[which].tolist(), strict=True))


def _counts(keys: list[Ints], users: Ints, n_items: int) -> Ints:
    """Return how many keys each user has."""
    total = np.zeros(users.size, dtype=np.int64)
    for own in keys:
        total += np.searchsorted(own, (users + 1) * n_items) - np.searchsorted(own, users * n_items)
    return total


def _rejected(n_items: int, users: Ints, counts: Ints, blocked: list[Ints], rng: np.random.Generator) -> Ints:
    """Draw any items again and again, until each user has enough that are distinct and not blocked."""
    found, missing = np.zeros(0, dtype=np.int64), counts
    while missing.any():
        owners = np.repeat(users, missing)
        fresh = np.sort(owners * n_items + rng.integers(0, n_items, owners.size))
        keep = np.diff(fresh, prepend=-1) > 0
        for own in (*blocked, found):
            keep &= ~_contains(own, fresh)
        found = np.sort(np.concatenate([found, fresh[keep]]))
        missing = counts - _counts([found], users, n_items)
    return found


def _contains(keys: Ints, asked: Ints) -> Bools:
    """Return which of the numbers are among the keys; both ascend."""
    if not keys.size:
        return np.zeros(asked.size, dtype=np.bool_)
    at = np.minimum(np.searchsorted(keys, asked), keys.size - 1)
    return keys[at] == asked


def _chosen(n_items: int, user: int, count: int, blocked: list[Ints], rng: np.random.Generator) -> Ints:
    """Draw from the list of all candidates that are left for one user."""
    left = np.ones(n_items, dtype=np.bool_)
    for own in blocked:
        start, stop = np.searchsorted(own, [user * n_items, (user + 1) * n_items])
        left[own[start:stop] - user * n_items] = False
    return user * n_items + rng.choice(np.flatnonzero(left), count, replace=False, shuffle=False)
