"""What a sampled count is worth: the values that a metric, corrected or not, reads at h = 0..m."""

from __future__ import annotations

import dataclasses

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.errors import InputError
from truerank.metrics.base import Metric, Terms
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import SamplingDesign


def as_sampled(ranks: Ranks, design: SamplingDesign, n: int | None = None) -> Ranks:
    """Return exact ranks as a sample with nothing above shows them: all that tables depend on, but the counts.

    Candidates before sampling are those of the ranks, or `n` for all instances.
    """
    nothing = np.zeros_like(ranks.above)
    sampled = ranks.sampled(design, np.full(len(ranks), design.size), above=nothing, tied=nothing)
    return sampled if n is None else dataclasses.replace(sampled, n_catalogue=np.full(len(ranks), n))


def terms_of_counts(metric: Metric, shown: Ranks) -> tuple[Terms, ...]:
    """Return the terms of a metric that depend on the sampled counts of the item alone, or refuse it."""
    if metric.pools_instances:
        raise InputError(f"{metric} has no table: its values depend on all instances together.")
    return metric.terms(shown)


def counted(terms: Terms, sampled: Ranks, items: Ints) -> Floats:
    """Return what these relevant items add at each sampled count: a row of m + 1 values per item, without weights."""
    counts = np.arange(int(sampled.draws.max(initial=0)) + 1)
    per_item = (sampled.i, sampled.item_n_relevant, terms.n)
    i, n_relevant, n = (np.repeat(numbers[items][:, None], counts.size, axis=1) for numbers in per_item)
    return np.asarray(terms.term.term(counts + i, i, n_relevant, n), dtype=np.float64)
