"""Text such as ``"ndcg@10"`` in, a metric as a value such as ``NDCG(10)`` out."""

from truerank.metrics.graded import DCG, Discount, Graded, GradedNDCG, MARp, Rp, WeightedRecall
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
    Metric,
    Part,
    Precision,
    Recall,
    RPrecision,
)  # fmt: skip

__all__ = [
    "AP", "AUC", "DCG", "F1", "HR", "NDCG", "RBP", "RR", "Accuracy", "Discount", "FunctionMetric", "Graded",
    "GradedNDCG", "MARp", "MeanRank", "Metric", "Part", "Precision", "RPrecision", "Recall", "Rp", "WeightedRecall",
]  # fmt: skip
