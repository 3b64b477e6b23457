"""A Sphinx extension: words that people search for, and the page that answers them, which the search shows first."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

TERMS: dict[str, tuple[str, ...]] = {
    "how-to/compare-two-models": (
        "compare two models",
        "A/B test",
        "which model is better",
        "statistical significance",
    ),
    "how-to/trust-sampled-metric": (
        "sampled HR@10",
        "can I trust my sampled metric",
        "sampled metrics",
        "sampled negatives",
        "100 negatives",
        "negative sampling",
    ),
    "how-to/pytorch-model": ("PyTorch", "torch", "training loop"),
    "how-to/slow-scorer": ("LLM", "language model", "cross-encoder", "slow model", "inverse sampling", "API cost"),
    "comparing": (
        "p value",
        "p-value",
        "paired test",
        "t-test",
        "bootstrap",
        "significance test",
        "multiple comparisons",
    ),
    "explanations/ties": ("ties", "equal scores", "tie breaking"),
    "spark": ("Spark", "PySpark", "Dask", "Ray", "cluster"),
    "how-to/release-gate": ("release gate", "CI", "GitHub Actions", "JUnit", "non-inferiority", "margin"),
    "definitions": ("NDCG", "Recall", "MRR", "MAP", "hit rate", "AUC", "F-beta", "bpref", "precision", "ERR", "PSP@k"),
    "explanations/uncertainty": ("confidence interval", "standard error", "error bars", "plus minus"),
    "recommending": (
        "diversity",
        "coverage",
        "novelty",
        "serendipity",
        "calibration",
        "rank-biased overlap",
        "personalization",
        "beyond accuracy",
    ),
    "data": ("train test split", "leave one out", "time split", "MovieLens", "data leakage"),
    "how-to/run-and-qrels": ("TREC", "qrels", "trec_eval", "pytrec_eval"),
    "how-to/embeddings": ("embeddings", "retrieval", "two-tower", "dense retrieval"),
    "how-to/published-number": ("reproduce a paper", "published number", "different numbers"),
    "how-to/sampled-ranks": ("correct sampled ranks",),
    "how-to/triples": ("knowledge graph", "link prediction", "PyKEEN"),
    "how-to/scores": ("OGB", "TGB", "in-batch negatives"),
    "models": ("implicit", "LensKit", "RecBole", "Cornac", "RecTools", "LightFM"),
    "conventions": ("ranx", "ir_measures"),
    "report": ("HTML report", "plots", "charts", "explorer"),
    "many": ("many models", "random seeds", "leaderboard"),
    "sampling": ("correction", "bias-variance"),
    "recommenders": ("baseline", "popularity baseline", "EASE", "iALS", "item kNN"),
    "how-to/troubleshooting": ("install", "pip install", "bug"),
    "libraries": ("alternatives", "speed comparison"),
    "tutorials/first-evaluation": ("getting started", "quickstart", "tutorial", "first steps"),
    "explanations/why-sampled-metrics-mislead": ("why sampled metrics mislead",),
}
"""Terms by page, as they are typed into the search box; upper and lower case do not matter."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    app.add_transform(SearchTerms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class SearchTerms(SphinxTransform):
    """Add the terms of a page to the index as main entries, which the search ranks above all others."""

    default_priority = 400  # before the domains collect the entries

    def apply(self, **options: Any) -> None:
        section = next(self.document.findall(nodes.section), None)
        terms = TERMS.get(self.env.docname, ())
        if section is None or not terms:
            return
        entries = [("single", term, section["ids"][0], "main", None) for term in terms]
        section.insert(1, addnodes.index(entries=entries))
