"""Exact filtered hits@10 from a part of the scores: a cheap model of PyKEEN as the proxy of a better one.

On UMLS, a model with 64 factors and DistMult with 8 are trained, and all test triples are ranked on both sides: among
all entities, and with `HeadFirst` in the order of the small model, of popularity, or of the model itself, which is the
best there could be. The shares of the scores that were computed are results/triples.csv.

    python benchmarks/triples.py [--k 10]
"""

import argparse
import logging
from typing import Any

import torch
from pykeen import datasets, models
from pykeen.training import SLCWATrainingLoop

import truerank as tr
from real_ranks import save

MODELS = {"ComplEx": 20, "RotatE": 100}
"""Models and the epochs of their training: one that finds few triples, and one that finds nearly all."""


def trained(kind: Any, data: Any, factors: int, epochs: int) -> Any:
    model = kind(triples_factory=data.training, embedding_dim=factors, random_seed=0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    loop = SLCWATrainingLoop(model=model, triples_factory=data.training, optimizer=optimiser)
    loop.train(data.training, num_epochs=epochs, batch_size=512, use_tqdm=False)
    return model.eval()


def measure(name: str, data: Any, k: int) -> list[tuple[object, ...]]:
    """Return the hits of a model, and the share of the scores by proxy."""
    large, small = (
        trained(kind, data, factors, MODELS[name])
        for kind, factors in ((getattr(models, name), 64), (models.DistMult, 8))
    )
    test = data.testing.mapped_triples
    known = [data.training.mapped_triples, data.validation.mapped_triples, test]
    exact = tr.rank_triples(large, test, known=known)
    hits = tr.estimate(exact, f"hr@{k}").mean
    rows: list[tuple[object, ...]] = []
    for proxy, model in {"small model": small, "popularity": None, "itself": large}.items():
        top = tr.rank_triples(large, test, known=known, design=tr.HeadFirst(k, proxy=model), rng=0)
        assert tr.estimate(top, f"hr@{k}").mean == hits
        share = top.n_scored.sum() / exact.n_candidates.sum()
        rows.append((name, MODELS[name], data.num_entities, k, f"{hits:.4f}", proxy, f"{share:.4f}"))
        print(*rows[-1], sep="  ", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=10)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    data = datasets.UMLS()
    rows = [row for name in MODELS for row in measure(name, data, options.k)]
    save("triples.csv", ("model", "epochs", "entities", "k", "hits", "proxy", "share of the scores"), rows)


if __name__ == "__main__":
    main()
