"""Text such as ``"ndcg@10"`` in, a metric as a value such as ``NDCG(10)`` out."""

from truerank.metrics.graded import DCG, Discount, GradedNDCG, MARp, Rp, WeightedRecall, weighted
from truerank.metrics.plain import (
    AP,
    AUC,
    F1,
    HR,
    NDCG,
    RBP,
    RR,
    Accuracy,
    FunctionMetric,
    MeanRank,
    Precision,
    Recall,
    RPrecision,
)  # fmt: skip

__all__ = [
    "AP", "AUC", "DCG", "F1", "HR", "NDCG", "RBP", "RR", "Accuracy", "Discount", "FunctionMetric", "GradedNDCG",
    "MARp", "MeanRank", "Precision", "RPrecision", "Recall", "Rp", "WeightedRecall", "weighted",
]  # fmt: skip
