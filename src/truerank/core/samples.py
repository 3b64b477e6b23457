"""What ranks know about a sample: its design, the size of the catalogue, and how many candidates were drawn."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truerank.core import checks
from truerank.core.checks import Floats, InputError, Ints, as_ints, frozen
from truerank.core.text_forms import Named, Registry


@dataclass(frozen=True)
class Design(Named, ABC):
    """The description of a sample: what ranks found in it must satisfy, and what they mean.

    `truerank.SamplingDesign` adds how to draw one.

    Parameters
    ----------
    m : int, optional
        Irrelevant candidates sampled for each instance. None: the number differs by instance, as for candidates that
        somebody else has sampled.
    """

    m: int | None = None

    def __post_init__(self) -> None:
        if self.m is not None:
            checks.check_whole("m", self.m, floats=True)

    @property
    def size(self) -> int:
        """The number of candidates to sample; an error if it differs by instance."""
        if self.m is None:
            raise InputError(f"the number of candidates to sample must be given, for instance {self.name}(100).")
        return self.m

    @property
    def keeps_unbiased(self) -> bool:
        """Whether metrics that stay unbiased under uniform sampling stay so under this design."""
        return False

    @property
    def needs_estimator(self) -> bool:
        """Whether metrics of the sampled ranks are meaningless unless they estimate exact ones."""
        return False

    @property
    def unequal_chances(self) -> bool:
        """Whether some candidates are likelier to be sampled than others; only then is there a `Sample.estimated`."""
        return False

    def check_drawn(self, above: Ints, drawn: Ints | None) -> None:
        """Refuse draws per relevant item (`Sample.drawn`) that the design can't have made."""
        if drawn is not None:
            raise InputError(f"under {self} the relevant items of an instance share their sample; leave out `drawn`.")

    def check(self, n_irrelevant: Ints, draws: ArrayLike) -> None:
        """Refuse instances from which this many candidates cannot be drawn."""
        if np.any(np.asarray(n_irrelevant) < 1):
            raise InputError("every instance must have an irrelevant candidate to sample, but some have none.")
        if np.any(np.asarray(draws) < 1):
            raise InputError("every instance must have at least one sampled candidate, but some have none.")


_HOMES = ("truerank.sampling.designs",)
DESIGNS: Registry[Any] = Registry("sampling design", "'uniform(100)' or 'inverse(2)'", homes=_HOMES)
"""Every design by its name."""


@dataclass(frozen=True, init=False, eq=False)
class Sample:
    """The sample behind sampled ranks: how the candidates were sampled, and from how many.

    Parameters
    ----------
    design : SamplingDesign or str
        How the irrelevant candidates were sampled.
    n_catalogue : int or array of int, one per instance
        Candidates before sampling, relevant ones included.
    drawn : array of int, one per relevant item, optional
        The candidates among which the item was counted, where the relevant items of an instance need not share them.
        None: all that were sampled for the instance.
    estimated : array of float, one per relevant item, optional
        Where candidates had unequal chances: how many irrelevant candidates are above the item, estimated from the
        sampled ones: each one above counts 1 / its chance, each tied one half of that. None: some
        chance is not known, or 0.

    Examples
    --------
    >>> import truerank as tr
    >>> sample = tr.Sample("uniform(20)", n_catalogue=1_000)
    >>> tr.Ranks(above=[3, 0], n_candidates=21, sample=sample)
    Ranks(2 instances, 2 relevant items, 21 of 1000 candidates sampled, no ties)
    """

    design: Design
    n_catalogue: Ints
    drawn: Ints | None
    estimated: Floats | None

    def __init__(
        self,
        design: Design | str,
        n_catalogue: ArrayLike,
        drawn: ArrayLike | None = None,
        estimated: ArrayLike | None = None,
    ) -> None:
        given: object = DESIGNS.read(design) if isinstance(design, str) else design
        if not isinstance(given, Design):
            raise InputError(f"`design` must be a sampling design, or a text such as 'uniform(100)', got {given!r}.")
        catalogue = n_catalogue if np.ndim(n_catalogue) == 0 else frozen(as_ints("n_catalogue", n_catalogue))
        looked = None if drawn is None else frozen(as_ints("drawn", drawn))
        weighed = None if estimated is None else frozen(checks.as_floats("estimated", estimated))
        vars(self).update(design=given, n_catalogue=catalogue, drawn=looked, estimated=weighed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample):
            return NotImplemented
        names = ("n_catalogue", "drawn", "estimated")
        same = all(checks.same_arrays(getattr(self, name), getattr(other, name)) for name in names)
        return self.design == other.design and same

    def with_arrays(self, n_catalogue: Ints, drawn: Ints | None, estimated: Floats | None) -> Sample:
        """Return a sample by the same design with other arrays, which must be valid already."""
        new = object.__new__(Sample)
        arrays = {"n_catalogue": n_catalogue, "drawn": drawn, "estimated": estimated}
        fixed = {name: None if array is None else frozen(array) for name, array in arrays.items()}
        vars(new).update(design=self.design, **fixed)
        return new

    def fitted(self, above: Ints, tied: Ints, n: Ints, indptr: Ints) -> Sample:
        """Return the sample with a catalogue size per instance, or raise `InputError` unless it fits the counts."""
        sizes = np.diff(indptr)
        catalogue, draws = checks.per_instance("n_catalogue", self.n_catalogue, sizes.size), n - sizes
        for name, each in (("drawn", self.drawn), ("estimated", self.estimated)):
            if each is not None and each.size != above.size:
                raise InputError(f"`{name}` must have the length of `above` ({above.size}), got {each.size}.")
        if self.estimated is not None and not self.design.unequal_chances:
            raise InputError(f"a sample by {self.design} has no `estimated` counts.")
        if self.drawn is not None:
            checks.require_within("drawn", self.drawn, above + tied, np.repeat(draws, sizes))
        if self.design.m is not None:
            rule = f"be m + relevant items (m = {self.design.m})"
            checks.require(draws == self.design.m, "n_candidates", rule, n)
        filled = sizes > 0
        self.design.check((catalogue - sizes)[filled], draws[filled])
        self.design.check_drawn(above, self.drawn)
        return self.with_arrays(catalogue, self.drawn, self.estimated)
