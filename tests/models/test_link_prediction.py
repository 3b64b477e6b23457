"""`convention=` gives the numbers of OGB and PyKEEN, whose evaluators take arrays of scores."""

from typing import Any

import numpy as np
import pytest
import torch

import truerank as tr

ogb = pytest.importorskip("ogb.linkproppred", reason="install the extra 'models'")
pykeen = pytest.importorskip("pykeen.evaluation", reason="install the extra 'models'")


def scores(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return scores with many ties."""
    return torch.as_tensor(np.random.default_rng(seed).integers(0, 9, shape) / 8.0, dtype=torch.float32)


def means(ranks: tr.Ranks, metrics: list[str], convention: str, **how: Any) -> dict[str, float]:
    table = tr.evaluate(ranks, metrics, convention=convention, **how)
    return {metric: table[metric].mean for metric in metrics}


def test_ogb_citation2() -> None:
    positive, negative = scores(300), scores(300, 50, seed=1)
    found = ogb.Evaluator("ogbl-citation2").eval({"y_pred_pos": positive, "y_pred_neg": negative})
    expected = {"rr": "mrr_list", "hr@1": "hits@1_list", "hr@3": "hits@3_list", "hr@10": "hits@10_list"}
    ours = means(tr.Ranks.from_scores(positive, negative, n=2_927_963), list(expected), "ogb")
    assert ours == pytest.approx(
        {ours: float(found[theirs].double().mean()) for ours, theirs in expected.items()}, rel=1e-6
    )


@pytest.mark.parametrize(("name", "k"), [("ogbl-ppa", 100), ("ogbl-collab", 50), ("ogbl-ddi", 20)])
def test_ogb_pools(name: str, k: int) -> None:
    positive, pool = scores(300), scores(200, seed=1) * scores(200, seed=2)
    found = ogb.Evaluator(name).eval({"y_pred_pos": positive, "y_pred_neg": pool})
    ours = means(tr.Ranks.from_scores(positive, pool), [f"hr@{k}"], "ogb-pool")
    assert 0 < ours[f"hr@{k}"] < 1
    assert ours[f"hr@{k}"] == pytest.approx(found[f"hits@{k}"])


@pytest.mark.parametrize(
    ("theirs", "how"), [("realistic", "expected"), ("optimistic", "optimistic"), ("pessimistic", "pessimistic")]
)
def test_pykeen(theirs: str, how: str) -> None:
    """Scores of all candidates, some of which are known to be true and left out."""
    positive, every = scores(200, 1), scores(200, 40, seed=1)
    every[:, :1] = positive
    known = torch.as_tensor(np.random.default_rng(2).random((200, 40)) < 0.3)
    known[:, 0] = False
    evaluator = pykeen.RankBasedEvaluator(filtered=True)
    triples = torch.zeros(200, 3, dtype=torch.long)
    evaluator.process_scores_(triples, "tail", every.masked_fill(known, torch.nan), positive)
    found = evaluator.finalize()
    names = {
        "rr": "inverse_harmonic_mean_rank",
        "hr@3": "hits_at_3",
        "recall@10": "hits_at_10",
        "mean-rank": "arithmetic_mean_rank",
        "amri": "adjusted_arithmetic_mean_rank_index",
    }
    ranks = tr.Ranks.from_scores(positive, every[:, 1:], negative_mask=~known[:, 1:])
    # PyKEEN knows the expected rank of a random order for realistic ranks alone
    chosen = [ours for ours in names if ours != "amri" or theirs == "realistic"]
    expected = {ours: found.get_metric(f"tail.{theirs}.{names[ours]}") for ours in chosen}
    assert means(ranks, chosen, "pykeen", ties=how) == pytest.approx(expected, rel=1e-6)


def test_tensors_are_arrays() -> None:
    positive, negative = scores(300), scores(300, 50, seed=1)
    plain = tr.Ranks.from_scores(positive.numpy(), negative.numpy())
    for kind in (torch.float32, torch.float64, torch.bfloat16, torch.float16):  # all of which hold eighths
        assert tr.Ranks.from_scores(positive.to(kind, copy=True).requires_grad_(), negative.to(kind)) == plain
    mask = scores(300, 50, seed=3) > 0.5
    masked = tr.Ranks.from_scores(positive, negative, negative_mask=mask)
    assert masked == tr.Ranks.from_scores(positive.numpy(), negative.numpy(), negative_mask=mask.numpy())
    square = scores(30, 30)
    assert tr.Ranks.in_batch(square) == tr.Ranks.in_batch(square.numpy())
