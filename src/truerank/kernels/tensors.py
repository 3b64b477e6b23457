"""PyTorch tensors on a device -> counts, computed on the device; only the counts leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from truerank.core.checks import AnyArray, InputError, Ints, slices
from truerank.core.csr import entries_of, owners
from truerank.kernels.user_blocks import Counts, Lists, Progress, check_lists

if TYPE_CHECKING:
    import torch

_COMPARED = 1 << 24
"""Scores that are computed, or compared, at once."""


def is_on_a_device(array: Any) -> bool:
    """Whether an array is a tensor outside main memory."""
    return hasattr(array, "detach") and array.device.type != "cpu"


def on_cpu(array: Any) -> AnyArray:
    """Return a tensor, or an array, as an array."""
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor without gradients, in single precision if it is in half precision."""
    import torch

    plain = tensor.detach()
    return plain.float() if plain.dtype in (torch.float16, torch.bfloat16) else plain


class EntryCounts(NamedTuple):
    """Per relevant entry, in the order in which they are given: irrelevant candidates above and tied, and its score."""

    above: torch.Tensor
    tied: torch.Tensor
    scores: torch.Tensor
    not_finite: torch.Tensor
    """Whether the score of any candidate is not finite."""


def count_entries(scores: torch.Tensor, rows: torch.Tensor, items: torch.Tensor, left_out: torch.Tensor) -> EntryCounts:
    """Compare each relevant entry with all candidates of its row, some entries at a time.

    Parameters
    ----------
    scores : tensor of shape (rows, n_items)
    rows, items : tensors of int
        Where the relevant entries are.
    left_out : tensor of bool, of the shape of the scores
        Entries that are not candidates, unless they are relevant.
    """
    import torch

    own = scores[rows, items]
    others = scores.masked_fill(left_out, torch.nan)  # NaN is neither above nor equal to anything
    others[rows, items] = torch.nan
    parts = list(slices(len(own), _COMPARED // max(scores.shape[1], 1)))
    above, tied = (
        torch.cat([rows[:0], *(compare(others[rows[part]], own[part, None]).sum(dim=1) for part in parts)])
        for compare in (torch.gt, torch.eq)
    )
    wrong = (~scores.isfinite() & ~left_out).any() | ~own.isfinite().all()
    return EntryCounts(above, tied, own, wrong)


def from_the_top(rows: Ints, scores: AnyArray) -> Ints:
    """Return the order of entries from the highest score of each row down; rows ascend."""
    return np.lexsort((-scores, rows))


def refuse_not_finite() -> None:
    """Raise the error for scores on a device, which does not say where they are."""
    hint = "leave items out with `train` or `exclude`, not by a score"
    raise InputError(f"scores must be finite, got NaN or an infinity for a candidate; {hint}.")


class FactorTensors(NamedTuple):
    """Factors of users and items, and biases of items, on one device."""

    users: torch.Tensor
    items: torch.Tensor
    bias: torch.Tensor | None

    @classmethod
    def of(cls, users: Any, items: Any, bias: Any) -> FactorTensors | None:
        """Return tensors or embedding layers that are on a device; None if they are not."""
        own, others, more = (getattr(each, "weight", each) for each in (users, items, bias))
        if not (is_on_a_device(own) and is_on_a_device(others) and own.device == others.device):
            return None
        import torch

        precise = torch.promote_types(widened(own).dtype, widened(others).dtype)
        precise = precise if precise.is_floating_point else torch.float64
        added = None if more is None else torch.as_tensor(more, device=own.device).detach().to(precise)
        return cls(own.detach().to(precise), others.detach().to(precise), added)

    def scores(self, users: Ints) -> torch.Tensor:
        """Return the scores of these users for all items."""
        products = self.users[self._tensor(users)] @ self.items.T
        return products if self.bias is None else products + self.bias

    def counts(self, train: Lists, test: Lists, progress: Progress | None = None) -> Counts:
        """Count as the compiled loops do, some users at a time."""
        n_users, n_items = len(test.indptr) - 1, len(self.items)
        for name, lists in (("train", train), ("test", test)):
            check_lists(name, lists, n_users, n_items)
        everyone = np.flatnonzero(np.diff(test.indptr))
        found = [(np.zeros(0, np.int64),) * 3]
        for part in slices(everyone.size, _COMPARED // max(n_items, 1)):
            found.append(self._count(everyone[part], train, test))
            if progress is not None:
                progress(len(everyone[part]))
        above, tied, order = map(np.concatenate, zip(*found, strict=True))
        return Counts(above, tied, order, np.isin(_keys(test, n_items), _keys(train, n_items)))

    def _count(self, users: Ints, train: Lists, test: Lists) -> tuple[Ints, Ints, Ints]:
        """Return counts of some users, and which entry of `test` each belongs to."""
        import torch

        scores = self.scores(users)
        left_out = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
        seen, entries = (_entries(lists, users) for lists in (train, test))
        left_out[self._tensor(seen[0]), self._tensor(train.indices[seen[1]])] = True
        rows, items = self._tensor(entries[0]), self._tensor(test.indices[entries[1]])
        above, tied, own, wrong = map(on_cpu, count_entries(scores, rows, items, left_out))
        if wrong:
            refuse_not_finite()
        order = from_the_top(entries[0], own)
        return above[order], tied[order], entries[1][order]

    def _tensor(self, numbers: AnyArray) -> torch.Tensor:
        import torch

        return torch.as_tensor(numbers.astype(np.int64), device=self.items.device)


def _entries(lists: Lists, users: Ints) -> tuple[Ints, Ints]:
    """Return the place among the users, and the position in the lists, of each of their entries."""
    positions, within = entries_of(lists.indptr, users)
    return owners(within), positions


def _keys(lists: Lists, n_items: int) -> Ints:
    return owners(lists.indptr) * n_items + lists.indices
