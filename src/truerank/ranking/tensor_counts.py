"""Counts from a batch of scores that is a PyTorch tensor, on its device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from truerank.data.interactions import Interactions

if TYPE_CHECKING:
    import torch


class BatchCounts(NamedTuple):
    """Counts for the relevant items of a batch, from the top of each row down; arrays, or tensors on their device."""

    above: Any
    tied: Any
    items: Any
    n_relevant: Any
    n_candidates: Any
    not_finite: Any
    """Whether the score of any candidate is not finite."""


def count_tensors(scores: torch.Tensor, relevant: Any, exclude: Any) -> BatchCounts:
    """Count the irrelevant candidates above, and tied with, each relevant item.

    The scores of irrelevant candidates are sorted, and those of the relevant items are looked up among them. `relevant`
    and `exclude` are masks of the shape of the scores, or interactions.
    """
    import torch

    plain = scores.detach()
    plain = plain.float() if plain.dtype in (torch.float16, torch.bfloat16) else plain
    hits = _mask(relevant, plain)
    left_out = _mask(exclude, plain) & ~hits
    others = plain.masked_fill(hits | left_out, -torch.inf).sort(dim=1).values
    n_relevant = hits.sum(dim=1)
    own, items = plain.masked_fill(~hits, -torch.inf).topk(int(n_relevant.max()), dim=1)
    lower, not_higher = (torch.searchsorted(others, own, right=side) for side in (False, True))
    here = torch.arange(own.shape[1], device=plain.device) < n_relevant[:, None]
    return BatchCounts(
        above=(plain.shape[1] - not_higher)[here],
        tied=(not_higher - lower)[here],
        items=items[here],
        n_relevant=n_relevant,
        n_candidates=plain.shape[1] - left_out.sum(dim=1),
        not_finite=(~plain.isfinite() & ~left_out).any(),
    )


def _mask(given: Any, scores: torch.Tensor) -> torch.Tensor:
    import torch

    if not isinstance(given, Interactions):
        return torch.as_tensor(given, device=scores.device) != 0
    marked = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
    rows, items = (torch.as_tensor(part, device=scores.device).long() for part in (given.users, given.items))
    marked[rows, items] = True
    return marked
