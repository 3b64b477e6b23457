"""`RankMetric`: ranking metrics in a training loop, as a metric of torchmetrics.

It needs PyTorch. If torchmetrics is not installed, it is a plain class with the same methods. See
docs/how-to/pytorch-model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.core.checks import Floats, InputError, Ints
from truerank.core.ranks import Ranks
from truerank.estimators.corrected import AnyMetric, as_metrics, recommended
from truerank.evaluation.per_instance import values
from truerank.ranking.batches import Marked, RankCounter

if TYPE_CHECKING:
    import torch

try:
    from torchmetrics import Metric
except ImportError:

    class Metric:  # type: ignore[no-redef]
        """The part of torchmetrics that `RankMetric` needs: one state, which `compute` sums over processes."""

        sums: torch.Tensor
        update: Callable[..., None]

        def __init_subclass__(cls) -> None:
            cls._alone = cls.compute
            cls.compute = cls._of_all_processes  # type: ignore[method-assign]

        def __call__(self, *given: Any, **named: Any) -> dict[str, torch.Tensor]:
            """Update, and return the metrics of this batch in this process."""
            before = self.sums
            self.reset()
            self.update(*given, **named)
            batch = self._alone()
            self.sums = before + self.sums
            return batch

        def compute(self) -> dict[str, torch.Tensor]:
            """Return the metrics of all batches."""
            raise NotImplementedError

        _alone = compute

        def _of_all_processes(self) -> dict[str, torch.Tensor]:
            """Return the metrics of all batches of all processes."""
            from torch import distributed

            own, self.sums = self.sums, self.sums.clone()
            if distributed.is_available() and distributed.is_initialized():
                distributed.all_reduce(self.sums)
            found, self.sums = self._alone(), own
            return found

        @property
        def device(self) -> torch.device:
            """Where the state is."""
            return self.sums.device

        def add_state(self, name: str, default: torch.Tensor, dist_reduce_fx: str) -> None:
            """Keep the only state."""
            self.sums = default

        def reset(self) -> None:
            """Forget all batches."""
            self.sums = self.sums.new_zeros(self.sums.shape)

        def to(self, device: Any) -> Metric:
            """Move the state to another device."""
            self.sums = self.sums.to(device)
            return self


__all__ = ["RankMetric"]

# a value is kept as a whole number of 2**-16 and one of 2**-52: sums of 10**8 values below 10**6 fit into 64 bits
_COARSE, _FINE = 2**16, 2**36


class RankMetric(Metric):  # type: ignore[misc]
    """Means of ranking metrics over all rows of all batches, as a metric of torchmetrics.

    The state consists of whole numbers, which are summed over processes. So the batches, their order and the number of
    processes do not change a bit of the result. It equals the mean of `truerank.evaluate` for the same ranks, except
    perhaps in the last digit, because `evaluate` adds up floats.

    Parameters
    ----------
    metrics : list of str, Metric or function (or one of them)
        As for `truerank.evaluate`, for instance ``["ndcg@10", "recall@10"]``. Estimators that look at all instances
        together are refused.
    **options
        Options of ``torchmetrics.Metric``, such as ``dist_sync_on_step=True``.

    Examples
    --------
    >>> import torch, truerank as tr
    >>> metric = tr.torch.RankMetric(["ndcg@10", "recall@1"])
    >>> metric.update(torch.tensor([[0.9, 0.8, 0.7, 0.6]]), torch.tensor([2]), exclude=[[0]])
    >>> metric.update(torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.4, 0.4, 0.2]]), [[3, 0], [1]])
    >>> {name: round(float(mean), 4) for name, mean in metric.compute().items()}
    {'ndcg@10': 0.6912, 'recall@1': 0.1667}

    Scores of positives and negatives, here a sample of 10,000 candidates:

    >>> metric = tr.torch.RankMetric("auc")
    >>> metric.update(tr.Ranks.from_scores(torch.tensor([0.9, 0.4]), torch.tensor([[0.1, 0.2], [0.3, 0.5]]), n=10_000))
    >>> metric.compute()
    {'auc': tensor(0.7500, dtype=torch.float64)}
    """

    full_state_update = False
    sums: torch.Tensor

    def __init__(self, metrics: AnyMetric | Iterable[AnyMetric], **options: Any) -> None:
        import torch

        chosen = as_metrics(metrics)
        if not chosen:
            raise InputError("RankMetric needs at least one metric.")
        super().__init__(**options)
        self.metrics = chosen
        self.add_state("sums", torch.zeros(len(self.metrics), 3, dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, scores: Any, relevant: Marked | None = None, *, exclude: Marked | None = None) -> None:
        """Add a batch.

        Parameters
        ----------
        scores : array or tensor of shape (batch, n_items), or Ranks
            A tensor is counted on its device; only the counts leave it. With `Ranks`, such as those of
            `Ranks.from_scores`, nothing else is given.
        relevant, exclude
            The relevant items of each row, and those that are not candidates, as in `RankCounter.update`.
        """
        ranks = _ranks(scores, relevant, exclude)
        found = [_whole_numbers(_values(ranks, metric)) for metric in self.metrics]
        self.sums = self.sums + self.sums.new_tensor(np.stack(found).tolist())

    def compute(self) -> dict[str, torch.Tensor]:
        """Return the mean of each metric over the rows where it is defined; NaN if there are none."""
        import torch

        kind = torch.float32 if self.sums.device.type == "mps" else torch.float64  # MPS has no float64
        means = map(_mean, self.sums.tolist())
        return {
            str(metric): torch.tensor(mean, dtype=kind, device=self.sums.device)
            for metric, mean in zip(self.metrics, means, strict=True)
        }


def _ranks(scores: Any, relevant: Any, exclude: Any) -> Ranks:
    if isinstance(scores, Ranks):
        if relevant is not None or exclude is not None:
            raise InputError("give either Ranks, or scores with `relevant`, not both.")
        return scores
    if relevant is None:
        raise InputError("give the `relevant` items of each row of scores.")
    counter = RankCounter()
    counter.update(scores, relevant, exclude=exclude)
    return counter.ranks()


def _values(ranks: Ranks, metric: Any) -> Floats:
    chosen = recommended(metric, ranks)
    if chosen.pools_instances:
        raise InputError(f"{chosen} looks at all instances together; collect their ranks with RankCounter.")
    return values(ranks, chosen)


def _whole_numbers(found: Floats) -> Ints:
    """Return the sum of the values as two whole numbers, and how many there are."""
    scaled = found[~np.isnan(found)] * _COARSE
    coarse = np.floor(scaled)
    fine = np.rint((scaled - coarse) * _FINE)
    return np.array([coarse.astype(np.int64).sum(), fine.astype(np.int64).sum(), scaled.size])


def _mean(sums: list[int]) -> float:
    """Return the sum over the number, rounded once."""
    coarse, fine, n = sums
    return (coarse * _FINE + fine) / (n * _COARSE * _FINE) if n else float("nan")
