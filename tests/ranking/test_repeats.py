"""Repeated items in lists, against a loop."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from truerank.ranking import truth as repeats
from truerank.ranking.truth import Numbered, first_repeat


def slowly(lists: list[list[int]]) -> set[int]:
    """Return the rows whose item is in their list more than once."""
    rows, row = set(), 0
    for items in lists:
        for item in items:
            if items.count(item) > 1:
                rows.add(row)
            row += 1
    return rows


@given(
    lists=st.lists(st.lists(st.integers(-3, 6), min_size=1, max_size=5), min_size=1, max_size=60),
    scale=st.sampled_from([1, 10**6, 2**60]),
    text=st.booleans(),
)
def test_repeats_are_found(lists: list[list[int]], scale: int, text: bool) -> None:
    flat = [item * scale for items in lists for item in items]
    items = pa.array([str(item) for item in flat] if text else flat)
    starts = np.cumsum([0, *map(len, lists)])
    found, expected = first_repeat(Numbered.of(items), starts), slowly(lists)
    assert (found is None) == (not expected)
    assert found is None or found in expected


def test_long_lists_and_large_catalogues() -> None:
    long = np.append(np.arange(100_000), 5)
    assert first_repeat(Numbered.of(pa.array(long)), np.array([0, long.size])) in (5, 100_000)
    assert first_repeat(Numbered.of(pa.array(long)), np.array([0, 50_000, long.size])) is None
    spread = np.arange(1_000) * repeats._TABLE
    assert first_repeat(Numbered.of(pa.array(spread)), np.arange(0, 1_001, 10)) is None
    spread[995] = spread[999]
    assert first_repeat(Numbered.of(pa.array(spread)), np.arange(0, 1_001, 10)) in (995, 999)
