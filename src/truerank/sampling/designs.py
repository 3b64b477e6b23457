"""Sampling designs: how candidates are sampled, and the distribution of the sampled counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray, Floats, Ints, check_whole
from truerank.errors import InputError
from truerank.text_forms import Named, Registry

if TYPE_CHECKING:
    from truerank.ranking.ranks import Ranks
    from truerank.sampling.laws import Law
    from truerank.sampling.pools import Pool
    from truerank.sampling.sequential import SequentialDesign

Counts = AnyArray | int
Rng = int | np.random.Generator | None


class WaysToRank(Protocol):
    """The two ways to rank held-out items by some scorers, for a design to choose from."""

    def among_samples(self, design: SamplingDesign) -> list[Ranks]:
        """Return ranks among samples that are drawn before any score is known."""

    def in_rounds(self, design: SequentialDesign) -> list[Ranks]:
        """Return ranks among candidates that are drawn until the scores tell enough."""


class Stops(NamedTuple):
    """What ended the draws for each relevant item: the first `hits` candidates above it, or a limit.

    Attributes
    ----------
    hits : int
    limit : array of int
        The most draws that there could have been.
    open_until : array of int
        The last number of draws after which the design looked, and went on.
    """

    hits: int
    limit: Ints
    open_until: Ints


@dataclass(frozen=True)
class SamplingDesign(Named, ABC):
    """A way to rank relevant items among sampled irrelevant candidates instead of all of them.

    To add one, subclass as a frozen dataclass, give it a `name`, and decorate it with
    `truerank.register_design`; its text form is how it is stored in files.

    Parameters
    ----------
    m : int, optional
        Irrelevant candidates sampled for each instance. None: each instance has a number of its own, as for candidates
        that somebody else has sampled.
    """

    m: int | None = None

    def __post_init__(self) -> None:
        if self.m is not None:
            check_whole("m", self.m)

    @property
    def size(self) -> int:
        """The one number of candidates to sample; an error if each instance has its own."""
        if self.m is None:
            raise InputError(f"the number of candidates to sample must be given, for instance {self.name}(100).")
        return self.m

    @property
    def keeps_unbiased(self) -> bool:
        """Whether metrics that stay unbiased under uniform sampling stay so under this design."""
        return False

    @property
    def needs_estimator(self) -> bool:
        """Whether metrics of the sampled ranks mean nothing unless they are estimates of exact ones."""
        return False

    @property
    def n_count_weights(self) -> int:
        """How many counts above an item, from 0 on, have weights (`Ranks.count_weights`); 0 for most designs."""
        return 0

    @property
    def proxies(self) -> tuple[Any, ...]:
        """Scorers that the design asks besides the one that is ranked."""
        return ()

    def ranked(self, ways: WaysToRank) -> list[Ranks]:
        """Return the ranks of each scorer, in the way that the design needs."""
        return ways.among_samples(self)

    def law(self, what: str) -> Law:
        """Return the law of the sampled count, for `what`; designs without one raise an error that names it."""
        raise InputError(
            f"{what} needs uniform sampling: under {self} the sampled rank depends on which items stand above."
        )

    def log_likelihood(self, above: Counts, drawn: Counts, count: AnyArray, n_irrelevant: Counts) -> Floats:
        """Return the log likelihood of each `count` among all candidates, given the sample, up to a constant.

        Only uniform designs have a likelihood; arguments broadcast.
        """
        raise InputError(f"estimating the law of the ranks needs uniform sampling, but these were sampled by {self}.")

    def possible_counts(self, above: Ints, drawn: Ints, n_irrelevant: Ints) -> tuple[Ints, Ints]:
        """Return the least and the largest count among all candidates that could have produced this sample."""
        return above, n_irrelevant - (drawn - above)

    def stops(self, ranks: Ranks) -> Stops | None:
        """Return what ended the draws for each relevant item of ranks that this design made; None: that isn't known."""
        return None

    def check_drawn(self, above: Ints, drawn: Ints | None) -> None:
        """Refuse draws per relevant item (`Ranks.drawn`) that the design can't have made."""
        if drawn is not None:
            raise InputError(f"under {self} the relevant items of an instance share their sample; leave out `drawn`.")

    def check(self, n_irrelevant: Ints, draws: ArrayLike) -> None:
        """Refuse instances from which this many candidates cannot be drawn."""
        if np.any(np.asarray(n_irrelevant) < 1):
            raise InputError("every instance must have an irrelevant candidate to sample, but some have none.")
        if np.any(np.asarray(draws) < 1):
            raise InputError("every instance must have at least one sampled candidate, but some have none.")

    @abstractmethod
    def sample(self, pool: Pool, rng: np.random.Generator) -> Sequence[Ints]:
        """Return the sampled items of each user of a pool."""

    def draw(self, ranks: Ranks, *, rng: Rng = None) -> Ranks:
        """Return what exact ranks would have been in a sample, drawn from their exact distribution.

        The relevant items of an instance share a sample, and ties are sampled too.
        """
        from truerank.sampling.drawing import draw_counts

        law = self.law("drawing from ranks")
        if ranks.design is not None or ranks.depth is not None:
            raise InputError("only exact ranks can be sampled, but these ranks are already sampled or cut.")
        n_irrelevant = ranks.n_candidates - ranks.n_relevant
        self.check(n_irrelevant[ranks.n_relevant > 0], self.size)
        draws = np.full(len(ranks), self.size)
        counts = (ranks.above, ranks.tied, ranks.indptr, n_irrelevant, draws)
        above, tied = draw_counts(*counts, law, np.random.default_rng(rng))
        return ranks.sampled(self, draws, above=above, tied=tied)


DESIGNS: Registry[SamplingDesign] = Registry("sampling design", "'uniform(100)' or 'inverse(2)'")
