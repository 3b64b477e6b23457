"""What every engine must rank as the local one does: ties, grades, text ids, repeated and very many held-out items."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import truerank as tr
from tests.arrays import AnyArray


@dataclass(frozen=True)
class Case:
    name: str
    users: AnyArray
    items: AnyArray
    train: list[list[int]] | None
    test: list[list[int]]
    grades: list[list[float]] | None = None
    text: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def user_ids(self) -> list[Any]:
        return [f"user {number:05d} é" if self.text else 3 * number - 50 for number in range(len(self.users))]

    @property
    def item_ids(self) -> list[Any]:
        return [f"i{number:05d}" if self.text else 7 * number - 90 for number in range(len(self.items))]

    def pairs(self, lists: list[list[int]]) -> dict[str, list[Any]]:
        users, items = self.user_ids, self.item_ids
        flat = [(users[user], items[item]) for user, own in enumerate(lists) for item in own]
        return {"user": [user for user, _ in flat], "item": [item for _, item in flat]}

    def expected(self, items: AnyArray | None = None) -> tr.Ranks:
        """Return the ranks of the local engine, without its notes."""
        names: dict[str, Any] = {"user_ids": self.user_ids, "item_ids": self.item_ids}
        scorer = tr.Factors(self.users, self.items if items is None else items, **names)
        train = None if self.train is None else tr.Interactions(self._matrix(self.train, None), **names)
        return tr.rank(scorer, train=train, test=tr.Interactions(self._matrix(self.test, self.grades), **names))

    def _matrix(self, lists: list[list[int]], grades: list[list[float]] | None) -> sp.csr_array:
        rows = np.repeat(np.arange(len(lists)), [len(own) for own in lists])
        values = np.ones(rows.size) if grades is None else np.concatenate(grades)
        columns = np.concatenate([np.array(own, dtype=int) for own in lists])
        return sp.csr_array((values, (rows, columns)), shape=(len(self.users), len(self.items)))


def make(
    name: str,
    seed: int,
    *,
    users: int = 120,
    items: int = 150,
    factors: int = 6,
    number: Any = np.float32,
    held: int = 5,
    seen: int | None = 20,
    tied: bool = False,
    graded: bool = False,
    text: bool = False,
) -> Case:
    rng = np.random.default_rng(seed)
    user_factors, item_factors = (rng.standard_normal((size, factors)) for size in (users, items))
    if tied:  # few different scores, whatever the order of adding
        user_factors, item_factors = np.rint(user_factors), np.rint(item_factors)
    lists = [sorted(rng.choice(items, rng.integers(1, held + 1), replace=False).tolist()) for _ in range(users)]
    train = None
    if seen is not None:  # some held-out items are training items as well
        train = [sorted(rng.choice(items, rng.integers(0, seen + 1), replace=False).tolist()) for _ in range(users)]
    grades = [rng.integers(0, 4, len(own)).astype(float).tolist() for own in lists] if graded else None
    both = user_factors.astype(number), item_factors.astype(number)
    return Case(name, *both, train, lists, grades, text)


def crowded() -> Case:
    """Return a case with one user who has 10,000 held-out items, and many who have one."""
    case = make("10,000 held-out items of one user", 7, users=40, items=12_000, held=1)
    many = np.sort(np.random.default_rng(8).choice(12_000, 10_000, replace=False)).tolist()
    return Case(case.name, case.users, case.items, case.train, [many, *case.test[1:]])


CASES = [
    make("float32", 0),
    make("float64", 1, number=np.float64),
    make("ties", 2, tied=True),
    make("ties in float64", 3, tied=True, number=np.float64),
    make("grades", 4, tied=True, graded=True),
    make("text, no training items", 5, text=True, seen=None),
    make("one factor, one held-out item", 6, factors=1, held=1, tied=True),
    crowded(),
]


def in_order(ranks: tr.Ranks) -> tr.Ranks:
    """Return ranks in the order of their ids."""
    assert ranks.ids is not None
    return ranks[np.argsort(ranks.ids)]


def assert_same(found: tr.Ranks, expected: tr.Ranks) -> None:
    """Compare everything that ranks hold, also the items, bit for bit."""
    found, expected = in_order(found), in_order(expected)
    assert found == expected
    assert found.items is not None
    assert expected.items is not None
    assert found.items.tolist() == expected.items.tolist()
