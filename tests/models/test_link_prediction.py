"""`convention=` gives the numbers of OGB, TGB and PyKEEN, whose evaluators take arrays of scores."""

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


@pytest.mark.parametrize("name", ["tgbl-wiki", "tkgl-smallpedia"])
def test_tgb(name: str) -> None:
    tgb = pytest.importorskip("tgb.linkproppred.evaluate", reason="install the extra 'models'")
    positive, negative = scores(300), scores(300, 50, seed=1)
    given = {"y_pred_pos": positive, "y_pred_neg": negative, "eval_metric": ["mrr", "hits@"]}
    found = tgb.Evaluator(name, k_value=10).eval(given)
    ours = means(tr.Ranks.from_scores(positive, negative, n=9_227), ["rr", "hr@10"], "tgb")
    assert ours == pytest.approx({"rr": float(found["mrr"]), "hr@10": float(found["hits@10"])}, rel=1e-6)


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


def test_arrays_of_jax() -> None:
    pytest.importorskip("jax", reason="install the extra 'models'")
    from jax import numpy as jnp

    positive, negative = scores(30), scores(30, 30, seed=1)
    mask = np.asarray(scores(30, 30, seed=3) > 0.5)
    plain = tr.Ranks.from_scores(positive.numpy(), negative.numpy(), negative_mask=mask)
    for kind in (jnp.float32, jnp.bfloat16, jnp.float16):
        arrays = jnp.asarray(positive.numpy(), kind), jnp.asarray(negative.numpy(), kind)
        assert tr.Ranks.from_scores(*arrays, negative_mask=jnp.asarray(mask)) == plain
        assert tr.Ranks.in_batch(arrays[1]) == tr.Ranks.in_batch(negative.numpy())


@pytest.mark.parametrize("name", ["Nations", "UMLS", "Kinships"])
def test_triples_of_the_embedded_data_sets(name: str) -> None:
    """A model whose scores are rounded, so that many tie."""
    from pykeen import datasets, models

    data = getattr(datasets, name)()
    torch.manual_seed(0)
    model = models.DistMult(triples_factory=data.training, embedding_dim=4).eval()
    for parameter in model.parameters():
        parameter.data = (parameter.data * 2).round() / 2
    test, known = data.testing.mapped_triples[:300], [data.training.mapped_triples, data.validation.mapped_triples]
    evaluator = pykeen.RankBasedEvaluator(filtered=True)
    found = evaluator.evaluate(model, test, additional_filter_triples=known, batch_size=64, use_tqdm=False)
    ranks = tr.rank_triples(model, test, known=[*known, test])
    assert ranks.tied_share > 0.5
    names = {
        "rr": "inverse_harmonic_mean_rank",
        "hr@10": "hits_at_10",
        "mean-rank": "arithmetic_mean_rank",
        "median-rank": "median_rank",
        "geometric-mean-rank": "geometric_mean_rank",
    }
    for theirs, how in (("realistic", "expected"), ("optimistic", "optimistic"), ("pessimistic", "pessimistic")):
        for side, part in (("both", ranks), ("tail", ranks[: len(test)]), ("head", ranks[len(test) :])):
            expected = {ours: found.get_metric(f"{side}.{theirs}.{each}") for ours, each in names.items()}
            assert means(part, list(names), "pykeen", ties=how) == pytest.approx(expected, rel=1e-6)
    index = found.get_metric("both.realistic.adjusted_arithmetic_mean_rank_index")
    # 1 less a ratio of mean ranks near 1, which PyKEEN has in single precision
    assert means(ranks, ["amri"], "pykeen")["amri"] == pytest.approx(index, abs=1e-6)
    theirs_of = {"z(mean-rank)": "arithmetic_mean_rank", "z(rr)": "inverse_harmonic_mean_rank", "z(hr)@10": "hits_at_k"}
    all_found = found.to_flat_dict()
    for side, part in (("both", ranks), ("tail", ranks[: len(test)]), ("head", ranks[len(test) :])):
        expected = {ours: all_found[f"{side}.realistic.z_{each}"] for ours, each in theirs_of.items()}
        assert means(part, list(theirs_of), "pykeen") == pytest.approx(expected, abs=1e-4)  # in single precision, too


def test_a_small_model_first() -> None:
    """The hits of a model of PyKEEN, from a part of its scores, in the order of another model."""
    from pykeen import datasets, models

    data = datasets.Nations()
    torch.manual_seed(0)
    large, small = (models.DistMult(triples_factory=data.training, embedding_dim=size).eval() for size in (16, 2))
    test, known = data.testing.mapped_triples, [data.training.mapped_triples, data.testing.mapped_triples]
    exact = tr.rank_triples(large, test, known=known)
    for proxy in (large, small):
        top = tr.rank_triples(large, test, known=known, design=tr.HeadFirst(1, proxy=proxy), rng=0)
        assert (tr.values(top, "hr@1") == tr.values(exact, "hr@1")).all()
    sampled = tr.rank_triples(large, test, known=known, design="uniform(3, replace)", rng=0)
    assert (sampled.n_catalogue == exact.n_candidates).all()
