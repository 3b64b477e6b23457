"""What validation over the whole catalogue adds to an epoch: matrix factorisation in PyTorch on MovieLens 1M.

An epoch is one pass of BPR (a negative per positive, Adam) over the training pairs. After each, all users are validated
in three ways: scores in blocks of 512 users counted by `RankMetric`; the factors ranked by `rank` with a depth of 20;
and for comparison `torch.topk` of the same blocks, with training items masked. CPU time, the smallest of all epochs,
and its share of the CPU time of an epoch are results/training_loop.csv.

    python benchmarks/training_loop.py FOLDER [--factors 64] [--epochs 3]

FOLDER holds train.tsv.gz and test.tsv.gz: pairs of user and item numbers.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

import truerank as tr
from real_ranks import save
from truerank.data.event_files import read_pairs

SHAPE = 6_040, 3_706
BLOCK = 512
METRICS = ["ndcg@10", "recall@10", "recall@20"]


class Factorisation(nn.Module):  # type: ignore[misc]
    def __init__(self, factors: int) -> None:
        super().__init__()
        self.users, self.items = (nn.Embedding(size, factors) for size in SHAPE)
        for each in (self.users, self.items):
            nn.init.normal_(each.weight, std=0.1)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        return (self.users(users) * self.items(items)).sum(-1)


def train(model: Factorisation, optimiser: torch.optim.Optimizer, pairs: torch.Tensor, batch: int = 4_096) -> None:
    for rows in torch.randperm(len(pairs)).split(batch):
        users, items = pairs[rows].T
        others = torch.randint(SHAPE[1], items.shape)
        loss = -nn.functional.logsigmoid(model(users, items) - model(users, others)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def blocks(model: Factorisation) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield some users at a time, and their scores of all items."""
    for users in torch.arange(SHAPE[0]).split(BLOCK):
        with torch.no_grad():
            scores = model.users(users) @ model.items.weight.T
        yield users, scores


def by_metric(model: Factorisation, known: sp.csr_array, held: torch.Tensor) -> float:
    metric = tr.torch.RankMetric(METRICS)
    for users, scores in blocks(model):
        metric.update(scores, held[users], exclude=known[users.numpy()])
    return float(metric.compute()["recall@20"])


def by_factors(model: Factorisation, known: sp.csr_array, held: torch.Tensor) -> float:
    ranks = tr.rank(tr.Factors(model.users, model.items), train=known, test=held[:, None].tolist(), depth=20)
    return tr.evaluate(ranks, METRICS)["recall@20"].mean


def by_topk(model: Factorisation, known: sp.csr_array, held: torch.Tensor) -> float:
    hits = 0
    for users, scores in blocks(model):
        seen = known[users.numpy()].tocoo()
        scores[torch.as_tensor(seen.row).long(), torch.as_tensor(seen.col).long()] = -torch.inf
        hits += int((scores.topk(20).indices == held[users, None]).sum())
    return hits / SHAPE[0]


def seconds(call: Callable[[], float | None]) -> tuple[float, float | None]:
    """Return the CPU time of a call in this process, of all threads, and its result."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    known, test = (read_pairs(options.folder / f"{part}.tsv.gz", SHAPE).matrix for part in ("train", "test"))
    known, test = known.tocsr(), test.tocsr()
    held, pairs = torch.as_tensor(test.indices).long(), torch.as_tensor(np.argwhere(known.toarray()))
    torch.manual_seed(0)
    model = Factorisation(options.factors)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    ways = {"RankMetric": by_metric, "rank(depth=20)": by_factors, "torch.topk": by_topk}
    spent: dict[str, list[float]] = {name: [] for name in ("epoch", *ways)}
    for epoch in range(options.epochs):
        spent["epoch"].append(seconds(lambda: train(model, optimiser, pairs))[0])
        found = {}
        for name, way in ways.items():
            took, found[name] = seconds(lambda way=way: way(model, known, held))  # type: ignore[misc]
            spent[name].append(took)
        print(f"epoch {epoch + 1}: recall@20", {name: round(value or 0.0, 6) for name, value in found.items()})
    whole = min(spent["epoch"])
    rows = [(name, f"{min(times):.3f}", f"{min(times) / whole:.4f}") for name, times in spent.items()]
    save("training_loop.csv", ("part", "CPU seconds", "share of an epoch"), rows)
    for row in rows:
        print("{:16} {:>8} s of CPU, {:>7} of an epoch".format(*row))


if __name__ == "__main__":
    main()
