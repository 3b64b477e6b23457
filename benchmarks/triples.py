"""Exact filtered hits@10 from a part of the scores: a cheap model of PyKEEN as the proxy of a better one.

For data sets that PyKEEN embeds, a model with 64 factors and DistMult with 8 are trained, and all test triples are
ranked on both sides: among all entities, and with `HeadFirst` in the order of the small model, of popularity, or of the
model itself, which is the best there could be. Prints the share of the scores that were computed.

    python benchmarks/triples.py [--model RotatE] [--epochs 100] [--k 10]
"""

import argparse
import logging
from typing import Any

import torch
from pykeen import datasets, models
from pykeen.training import SLCWATrainingLoop

import truerank as tr


def trained(kind: Any, data: Any, factors: int, epochs: int) -> Any:
    model = kind(triples_factory=data.training, embedding_dim=factors, random_seed=0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    loop = SLCWATrainingLoop(model=model, triples_factory=data.training, optimizer=optimiser)
    loop.train(data.training, num_epochs=epochs, batch_size=512, use_tqdm=False)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="RotatE")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--k", type=int, default=10)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    for kind in (datasets.UMLS, datasets.Kinships):
        data = kind()
        large = trained(getattr(models, options.model), data, 64, options.epochs)
        small = trained(models.DistMult, data, 8, options.epochs)
        test = data.testing.mapped_triples
        known = [data.training.mapped_triples, data.validation.mapped_triples, test]
        exact, cheap = (tr.rank_triples(model, test, known=known) for model in (large, small))
        hits = f"hr@{options.k}"
        numbers = [tr.estimate(ranks, hits).mean for ranks in (exact, cheap)]
        print(
            f"{data.__class__.__name__}: {data.num_entities} entities, {hits} {numbers[0]:.4f}, small {numbers[1]:.4f}"
        )
        for name, proxy in {"small model": small, "popularity": None, "itself": large}.items():
            design = tr.HeadFirst(options.k, proxy=proxy)
            top = tr.rank_triples(large, test, known=known, design=design, rng=0)
            same = tr.estimate(top, hits).mean == numbers[0]
            print(
                f"  {name:12} {top.n_scored.sum() / exact.n_candidates.sum():6.1%} of the scores, same {hits}: {same}"
            )


if __name__ == "__main__":
    main()
