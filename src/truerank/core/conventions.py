"""How other tools compute metrics: for each name of ours, the text form that gives their number.

Tools differ in divisors, ideals and discounts, in how instances are averaged, in how users without relevant items or
without a list are treated, and in the order of equal scores. This module only states the conventions;
`truerank.evaluate` and `truerank.read_lists` apply them. Tests compare with the tools themselves, and
docs/conventions.md is generated from this module.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from truerank.core import InputError

Weights = Literal["relevant", "achievable", "irrelevant"]
"""What an instance weighs in a pooled mean: its relevant items, at most k of them, or its irrelevant candidates."""

EqualScores = Literal["tie", "listed", "id", "arbitrary"]
"""The order of equal scores in a list: none, that of the list, by descending id as text, or an accident of a sort."""


@dataclass(frozen=True)
class Definition:
    """The metric that a tool computes where we have one of the same name."""

    theirs: str
    """What the tool calls it."""
    text: str
    """The text form that gives its number, with ``@k`` for the cut-off."""
    weights: Weights | None = None
    """For means that do not weigh all instances equally: the weight of an instance."""
    ties: Literal["expected", "pessimistic", "mean rank"] | None = None
    """How the tool treats equal scores in this metric, if it has a rule that does not depend on ids: the mean of the
    metric over all orders, the worst rank, or the metric at the mean of the best and the worst rank."""


@dataclass(frozen=True)
class Convention:
    """The metrics of a tool, and its rules for what is missing or tied."""

    name: str
    metrics: Mapping[str, Definition]
    """By our text form, with ``@k`` for the cut-off."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Metrics of the tool whose values can't be computed from ranks, and why."""
    without_relevant: float = math.nan
    """Value of users without relevant items; NaN: they are left out."""
    unlisted: Literal["miss", "drop"] | None = None
    """Whether users without a list count as misses or are dropped; None if the tool does not take lists."""
    equal_scores: EqualScores = "arbitrary"
    samples: bool = False
    """Whether the tool itself ranks among sampled candidates, so that sampled ranks give its number."""

    def definition(self, text: str) -> Definition:
        """Return the definition for a text form of ours, with its cut-off filled in.

        Examples
        --------
        >>> find_convention("trec_eval").definition("ap@20").text
        'ap(relevant)@20'
        """
        base, _, k = text.partition("@")
        key = f"{base}@k" if k.isdecimal() else text
        found = self.metrics.get(key)
        if found is None:
            reason = f": {self.refused[key]}" if key in self.refused else ""
            choices = ", ".join(self.metrics)
            raise InputError(f"{text} can't be computed as {self.name} does{reason}; choose from {choices}.")
        return replace(found, text=found.text.replace("@k", f"@{k}"))


def find_convention(name: object) -> Convention:
    """Return the convention with this name, or raise `InputError`."""
    if not isinstance(name, str) or name not in CONVENTIONS:
        close = difflib.get_close_matches(str(name), CONVENTIONS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(CONVENTIONS)}."
        raise InputError(f"unknown convention {name!r}; {hint}")
    return CONVENTIONS[name]


def _same(**theirs: str) -> dict[str, Definition]:
    """Return definitions that are ours: `precision_k` stands for precision@k."""
    texts = {name.replace("_k", "@k").replace("_", "-"): text for name, text in theirs.items()}
    return {text: Definition(name, text) for text, name in texts.items()}


_TREC = {
    **_same(precision_k="P_k", recall_k="recall_k", hr_k="success_k", rr="recip_rank", r_precision="Rprec"),
    "ap": Definition("map", "ap"),
    "ap@k": Definition("map_cut_k", "ap(relevant)@k"),
    "ndcg": Definition("ndcg", "gndcg"),
    "ndcg@k": Definition("ndcg_cut_k", "gndcg@k"),
}
_IR_MEASURES = {
    **_same(precision_k="P@k", recall_k="R@k", hr_k="Success@k", rr="RR", r_precision="Rprec", ap="AP"),
    "ap@k": Definition("AP@k", "ap(relevant)@k"),
    "ndcg": Definition("nDCG", "gndcg"),
    "ndcg@k": Definition("nDCG@k", "gndcg@k"),
}
_RANX = {
    **_same(precision_k="precision@k", recall_k="recall@k", hr_k="hit_rate@k", f1_k="f1@k", rr="mrr", rr_k="mrr@k"),
    **_same(ap="map", r_precision="r-precision"),
    "ap@k": Definition("map@k", "ap(relevant)@k"),
    "ndcg": Definition("ndcg", "gndcg"),
    "ndcg@k": Definition("ndcg@k", "gndcg@k"),
}
_RECTOOLS = {
    **_same(precision_k="Precision", recall_k="Recall", hr_k="HitRate", f1_k="F1Beta", rr_k="MRR"),
    "ap@k": Definition("MAP", "ap(relevant)@k"),
    "ndcg@k": Definition("NDCG", "ndcg(fixed)@k"),
}
_IMPLICIT = {
    **_same(ap_k="map", ndcg_k="ndcg"),
    "precision@k": Definition("precision", "precision(achievable)@k", weights="achievable"),
}
_LENSKIT = {
    **_same(rr_k="RecipRank", hr_k="Hit"),
    "recall@k": Definition("Recall", "recall(achievable)@k"),
    "ndcg@k": Definition("NDCG", "ndcg(original)@k"),
}
_RECBOLE = {
    **_same(precision_k="Precision", recall_k="Recall", hr_k="Hit", rr_k="MRR", ap_k="MAP", ndcg_k="NDCG"),
    "auc": Definition("GAUC", "auc", weights="relevant", ties="expected"),
}
_CORNAC = {
    **_same(precision_k="Precision", recall_k="Recall", hr_k="HitRatio", f1_k="FMeasure", ndcg_k="NDCG", rr="MRR"),
    "ndcg": Definition("NDCG", "ndcg"),
    "auc": Definition("AUC", "auc", ties="pessimistic"),
}
_SCIKIT_LEARN = {
    "ndcg": Definition("ndcg_score", "gndcg", ties="expected"),
    "ndcg@k": Definition("ndcg_score(k=k)", "gndcg@k", ties="expected"),
    "dcg": Definition("dcg_score", "dcg", ties="expected"),
    "dcg@k": Definition("dcg_score(k=k)", "dcg@k", ties="expected"),
}
_MEAN_RANK = {
    text: Definition(theirs, text, ties="mean rank")
    for text, theirs in {"rr": "mrr", "hr@k": "hits@k", "recall@k": "hits@k"}.items()
}
_POOL = {text: Definition("hits@k", text, ties="pessimistic") for text in ("hr@k", "recall@k")}
_PYKEEN = {
    text: Definition(theirs, text, "irrelevant" if text == "amri" else None, ties="mean rank")
    for text, theirs in {
        "rr": "inverse_harmonic_mean_rank",
        "hr@k": "hits_at_k",
        "recall@k": "hits_at_k",
        "mean-rank": "arithmetic_mean_rank",
        "amri": "adjusted_arithmetic_mean_rank_index",
        "median-rank": "median_rank",
        "geometric-mean-rank": "geometric_mean_rank",
        "z(mean-rank)": "z_arithmetic_mean_rank",
        "z(rr)": "z_inverse_harmonic_mean_rank",
        "z(hr)@k": "z_hits_at_k",
    }.items()
}
_LENGTHS = dict.fromkeys(("precision@k", "ap@k"), "it divides by the length of each list, which ranks do not keep")
_MARCO = "in this metric alone, equal scores are ordered by ascending id"
_BLOCKS = "relevant items with equal scores share the last of their ranks, but ranks do not keep which are equal"

CONVENTIONS = {
    each.name: each
    for each in (
        Convention("trec_eval", _TREC, {}, 0.0, unlisted="drop", equal_scores="id"),
        Convention("ir-measures", _IR_MEASURES, {"rr@k": _MARCO}, 0.0, unlisted="miss", equal_scores="id"),
        Convention("ranx", _RANX, {}, 0.0, unlisted="miss"),
        Convention("rectools", _RECTOOLS, unlisted="miss", equal_scores="listed"),
        Convention("implicit", _IMPLICIT, {"auc": "it counts training items as irrelevant candidates"}),
        Convention("lenskit", _LENSKIT, _LENGTHS, 0.0, unlisted="drop", equal_scores="listed"),
        Convention("recbole", _RECBOLE),
        Convention("cornac", _CORNAC, {"ap": _BLOCKS}),
        Convention("scikit-learn", _SCIKIT_LEARN, {"ap": _BLOCKS}, 0.0, equal_scores="tie"),
        Convention("ogb", _MEAN_RANK, equal_scores="tie", samples=True),
        Convention("ogb-pool", _POOL, equal_scores="tie", samples=True),
        Convention("tgb", _MEAN_RANK, equal_scores="tie", samples=True),
        Convention("pykeen", _PYKEEN, equal_scores="tie", samples=True),
    )
}
