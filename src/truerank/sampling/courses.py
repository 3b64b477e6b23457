"""How a design that scores candidate after candidate goes on: in which batches, and for which instances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np

from truerank.arrays import Ints

if TYPE_CHECKING:
    from truerank.ranking.ranks import Ranks
    from truerank.sampling.sequential import SequentialDesign

# candidates of each instance in the first batch; each further one adds a quarter of what was drawn, which bounds the
# waste
_FIRST, _GROWTH = 16, 0.25


def next_batch(start: int) -> int:
    """Return how many candidates of each instance come next when so many have been drawn."""
    return max(_FIRST, int(start * _GROWTH))


def batch_ends(last: int) -> Ints:
    """Return after how many draws batches end, up to the batch that holds the last draw.

    Examples
    --------
    >>> batch_ends(100).tolist()
    [16, 32, 48, 64, 80, 100]
    """
    ends = [next_batch(0)]
    while ends[-1] < last:
        ends.append(ends[-1] + next_batch(ends[-1]))
    return np.array(ends)


class Course:
    """One run of a sequential design; this one continues with every instance that is still open.

    Parameters
    ----------
    design : SequentialDesign
    ranks : Ranks
        The relevant items with all their candidates; their counts are still to be found.
    """

    def __init__(self, design: SequentialDesign, ranks: Ranks) -> None:
        self.design, self.ranks = design, ranks

    def batches(self) -> Iterator[tuple[int, int]]:
        """Yield from where, and how many, candidates of each instance are scored next."""
        end = int(self.ranks.draws.max(initial=0))
        end = end if self.design.cap is None else min(end, self.design.cap)
        start = 0
        while start < end:
            size = min(self.size(start), end - start)
            yield start, size
            start += size

    def size(self, start: int) -> int:
        """Return how many candidates come next when so many have been drawn."""
        return next_batch(start)

    def chosen(self, open_: Ints) -> Ints:
        """Return which of the open instances go on."""
        return open_

    def saw(self, places: Ints, above: Ints, scored: Ints) -> None:
        """Take note of the counts after a batch of these instances: one per relevant item of all instances.

        `scored` has the candidates scored so far, one per instance.
        """

    def found(self, *, above: Ints, tied: Ints, drawn: Ints, scored: Ints) -> Ranks:
        """Return ranks from what was counted; arguments as for `SequentialDesign.found`."""
        return self.design.found(self.ranks, above=above, tied=tied, drawn=drawn, scored=scored)


class Looks(Protocol):
    """What finds the counts of candidates above relevant items: by scoring them, or by drawing them from exact ranks.

    Attributes
    ----------
    above, tied, drawn : arrays of int, one per relevant item
        Candidates above and tied among those drawn so far.
    scored : array of int, one per instance
        Irrelevant candidates scored so far.
    """

    above: Ints
    tied: Ints
    drawn: Ints
    scored: Ints

    def open_instances(self) -> Ints:
        """Return the instances in which too little is known about some relevant item."""

    def look(self, places: Ints, start: int, size: int) -> None:
        """Look at the next candidates of some instances."""


def run(course: Course, looks: Looks, most: int | None = None) -> Ranks:
    """Return the ranks that a sequential design finds.

    Parameters
    ----------
    course : Course
    looks : Looks
    most : int, optional
        Candidates to look at in total. When they are used up, all draws end, as far as possible at the same number.
    """
    left = most
    for start, batch in course.batches():
        places = course.chosen(looks.open_instances())
        size = batch if left is None else min(batch, left // max(places.size, 1))
        if not places.size or not size:
            break
        before = int(looks.scored[places].sum())
        looks.look(places, start, size)
        course.saw(places, looks.above, looks.scored)
        if left is not None:
            left -= int(looks.scored[places].sum()) - before
        if size < batch:
            break
    return course.found(above=looks.above, tied=looks.tied, drawn=looks.drawn, scored=looks.scored)
