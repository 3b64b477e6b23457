"""What a recommender may learn from, and what it is asked to find."""

from __future__ import annotations

from dataclasses import dataclass

from truerank.errors import InputError
from truerank.interactions import Interactions


@dataclass(frozen=True)
class Split:
    """Interactions cut into a part to learn from and a part that was held out.

    Both parts have the same users and items, in the same order.
    """

    train: Interactions
    test: Interactions

    def __post_init__(self) -> None:
        if self.train.matrix.shape != self.test.matrix.shape:
            raise InputError(
                f"`train` and `test` must have the same users and items, got shapes "
                f"{self.train.matrix.shape} and {self.test.matrix.shape}."
            )
