"""The catalogue in descending order of the length of the factors, so that items with high scores come early."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.core.checks import AnyArray, Floats
from truerank.kernels import library
from truerank.kernels.user_blocks import Spans, UserBlock, check_read

_ROWS = 4096  # rows whose lengths are computed at once
_SOME = 1024  # users whose mean length says how much a bias matters


class Order(NamedTuple):
    """The item at each position, the length of its factors, and the position of each item."""

    items: NDArray[np.int32]
    lengths: Floats
    places: NDArray[np.int32]

    @classmethod
    def of(cls, users: AnyArray, items: AnyArray, bias: AnyArray) -> Order:
        """Return the order of items by how high a user of mean length could score them, highest first.

        Examples
        --------
        >>> Order.of(np.ones((1, 1)), np.array([[1.0], [-3.0], [2.0]]), np.array([])).items.tolist()
        [1, 2, 0]
        """
        lengths = _lengths(items)
        reach = lengths
        if bias.size:
            reach = lengths * _lengths(users[:: max(len(users) // _SOME, 1)]).mean() + bias
        order = np.argsort(-reach, kind="stable").astype(np.int32)
        places = np.empty_like(order)
        places[order] = np.arange(len(order), dtype=np.int32)
        return cls(order, lengths[order], places)

    def as_argument(self) -> library.OrderedArgument:
        """Return the order for a compiled loop."""
        return library.OrderedArgument.of(self.items, self.lengths)

    def placed(self, block: UserBlock) -> Spans:
        """Return, per user, the positions of the items of both lists, chunk by chunk; mark in the block those in both.

        The block then counts as read.

        Raises
        ------
        InputError
            If a list is out of order or range.
        """
        places = np.empty(len(block.train.items) + len(block.test.items), np.int32)
        library.call("place_lists", block.as_argument(np.float32), self.places, len(self.places), places)
        check_read(block.users, train=block.train, test=block.test)
        begin = block.train.begin + block.test.begin
        return Spans(places, begin, block.train.end + block.test.end, begin.copy())


def _lengths(rows: AnyArray) -> Floats:
    """Return the lengths of rows, computed in float64, some rows at a time because they may be mapped."""
    lengths = np.empty(len(rows))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite bounds nothing
        for start in range(0, len(rows), _ROWS):
            some = np.asarray(rows[start : start + _ROWS], np.float64)
            lengths[start : start + _ROWS] = np.sqrt(np.einsum("ij,ij->i", some, some))
    return lengths
