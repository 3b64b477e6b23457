"""Every public function, called with a wrong type for each of its parameters: it works, or it raises `InputError`."""

import inspect
from collections.abc import Iterator
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import truerank as tr

RANKS = tr.Ranks.from_ranks([1, 2, 5], n=50)
SAMPLED = tr.Ranks.from_sampled([1, 2, 5], m=10, n=50)
BOTH = {"A": RANKS, "B": tr.Ranks.from_ranks([2, 2, 9], n=50)}
TIMES = {"user": [0, 0, 0, 1, 1, 1], "item": [0, 1, 2, 0, 1, 2], "time": [1, 2, 3, 4, 5, 6]}
DATA = tr.read_interactions(TIMES)
SPLIT = tr.leave_k_out(DATA, 1, rng=0)
SCORES = np.arange(6.0).reshape(2, 3)
LISTS = {"u": ["a", "b"], "v": ["b", "a"]}

VALID: dict[str, dict[str, Any]] = {
    "Bootstrap": {},
    "EASE": {},
    "Factors": {"user_factors": np.ones((2, 2)), "item_factors": np.ones((3, 2))},
    "FunctionScorer": {"function": lambda users: SCORES[users], "n_items": 3, "n_users": 2},
    "HeadFirst": {},
    "IALS": {},
    "InverseSampling": {},
    "ItemKNN": {},
    "Popularity": {},
    "PopularitySampling": {},
    "Randomisation": {},
    "RankCounter": {},
    "Ranks": {"above": [0, 1], "n_candidates": 9},
    "Ranks.from_scores": {"positive": [1.0], "negative": [[0.5]]},
    "Ranks.in_batch": {"scores": [[1.0, 0.5], [0.5, 1.0]]},
    "Sample": {"design": "uniform(3)", "n_catalogue": 9},
    "ScoreMatrix": {"matrix": SCORES},
    "ScoreStore": {"path": "scores.db", "model": "mine"},
    "Similarity": {"similarity": np.eye(3), "history": [[0], [1]]},
    "Split": {"train": SPLIT.train, "test": SPLIT.test},
    "UniformSampling": {},
    "as_scorer": {"model": SCORES},
    "audit": {"published": {"X": {"recall@2": 0.5}}, "n": 20, "design": 5},
    "by_activity": {"split": SPLIT},
    "by_column": {"frame": pa.table({"user": [0, 1], "age": ["old", "young"]})},
    "by_popularity": {"split": SPLIT},
    "popularity_propensity": {"train": SPLIT.train},
    "Propensity": {"items": ["a", "b"], "chance": [0.5, 1.0]},
    "check_evaluator": {"evaluate": lambda run, truth, k: {"recall": 1.0}},
    "compare": {"ranks": BOTH, "metrics": "ap", "replicates": 10},
    "consistency": {"ranks": BOTH, "metric": "ap", "sizes": [1, 5]},
    "estimate": {"ranks": RANKS, "metric": "ap"},
    "evaluate": {"ranks": RANKS, "metrics": "ap"},
    "hold_out_fraction": {"data": DATA},
    "k_fold": {"data": DATA, "k": 2},
    "leave_k_out": {"data": DATA},
    "leave_last_out": {"data": DATA},
    "load_model": {"path": "no such model.npz"},
    "metric": {"text": "ap"},
    "plan": {"ranks": BOTH, "metrics": "ap", "design": [5]},
    "plan_scores": {"designs": 5, "like": RANKS, "metric": "ap"},
    "position_bias": {
        "ranks": tr.read_lists(LISTS, {"u": ["a"], "v": ["a"]}, candidates=LISTS),
        "candidates": LISTS,
        "replicates": 99,
    },
    "race": {"recommenders": {"a": SCORES, "b": -SCORES}, "split": SPLIT, "metric": "ap"},
    "rank_triples": {"score": lambda heads, relations, tails: np.eye(1, 3), "test": [[0, 0, 1]]},
    "rank": {"scorer": SCORES, "test": [[0], [1]]},
    "rank_sampled": {"scorer": SCORES, "test": [[0], [1]], "design": 1},
    "read_candidates": {"source": {"item": [0, 1], "user": [0, 0]}},
    "read_interactions": {"source": TIMES},
    "read_lists": {"run": LISTS, "truth": LISTS},
    "read_ranks": {"source": {"user": ["u"], "rank": [1], "n": [5]}},
    "read_recommendations": {"source": LISTS},
    "read_split": {"train": LISTS, "test": LISTS},
    "recommend": {"scorer": SCORES, "train": [[0], [1]], "k": 1},
    "register": {"new": tr.UniformSampling},
    "register_adapter": {"library": "nothing"},
    "risk": {"ranks": RANKS, "metric": "ap", "design": 5},
    "rolling_splits": {"data": DATA, "window": 2, "n": 1},
    "split_by_time": {"data": DATA, "at": 3},
    "values": {"ranks": RANKS, "metric": "ap"},
    "values_frame": {"ranks": RANKS, "metrics": "ap"},
    "write_explorer": {"ranks": BOTH, "path": "page.html"},
    "write_report": {"ranks_or_results": tr.evaluate(RANKS, "ap"), "path": "page.html"},
    "metrics.AMRI": {},
    "metrics.AP": {},
    "metrics.AUC": {},
    "metrics.Accuracy": {},
    "metrics.DCG": {},
    "metrics.Discount": {},
    "metrics.F1": {"k": 3},
    "metrics.FBeta": {"beta": 2.0, "k": 3},
    "metrics.PartialAUC": {"k": 3},
    "metrics.BPref": {},
    "metrics.GradedNDCG": {},
    "metrics.HR": {"k": 3},
    "metrics.MARp": {"k": (3,)},
    "metrics.MeanRank": {},
    "metrics.NDCG": {},
    "metrics.Precision": {"k": 3},
    "metrics.RBP": {"p": 0.5},
    "metrics.RPrecision": {},
    "metrics.RR": {},
    "metrics.Recall": {"k": 3},
    "metrics.Rp": {"k": 3},
    "metrics.WeightedRecall": {"k": 3},
    "metrics.FunctionMetric": {"name": "mine", "function": lambda rank, i, n_relevant, n: 1 / rank},
    "estimators.BiasVariance": {},
    "estimators.ConstrainedLeastSquares": {},
    "estimators.Corrected": {"metric": tr.metric("ap"), "correction": tr.estimators.Unbiased()},
    "estimators.ExpectationMaximisation": {},
    "estimators.LeastSquares": {},
    "estimators.MaximumEntropy": {},
    "estimators.Monotone": {},
    "estimators.Multinomial": {},
    "estimators.RankEstimate": {},
    "estimators.Smooth": {},
    "estimators.Possible": {},
    "estimators.Unbiased": {},
    "estimators.as_prior": {"weights": [1.0, 2.0]},
    "estimators.correction_table": {"metric": "ap~cls", "design": 4, "n": 21},
    "estimators.learn_prior": {"ranks": SAMPLED},
    "plots.metrics_by_rank": {"ranks": RANKS},
    "plots.metric_by_m": {"ranks": BOTH, "metric": "ap"},
    "plots.expected_by_rank": {"ranks": RANKS, "metric": "ap", "designs": [5]},
    "plots.corrected_by_rank": {"ranks": RANKS, "metric": "ap", "design": 10},
    "plots.error_by_budget": {"results": [{"budget": 1, "design": "uniform", "estimator": "bv", "rmse": 0.1}]},
    "plots.rank_distribution": {"ranks": BOTH},
    "plots.orders_by_m": {"ranks": BOTH, "metric": "ap"},
    "plots.metrics": {"evaluation": tr.evaluate(BOTH, "ap")},
    "plots.differences": {"comparison": tr.compare(BOTH, "ap")},
    "Ranks.from_ranks": {"ranks": [1, 2], "n": 9},
    "Ranks.from_sampled": {"ranks": [1, 2], "m": 5, "n": 9},
}
"""A small valid call of each."""

MADE_ELSEWHERE = {
    **dict.fromkeys(["Audit", "Comparison", "Consistency", "Difference", "Estimate", "Evaluation"], "a result"),
    **dict.fromkeys(
        ["Order", "Plan", "Race", "Risk", "ScorePlan", "Verdict", "Interval", "Recommendations"], "a result"
    ),
    **dict.fromkeys(["Candidates", "Groups", "Interactions"], "made by `of` and the readers, which check"),
    **dict.fromkeys(["Metric", "PairedTest", "SamplingDesign", "Scorer"], "a base class"),
    **dict.fromkeys(["metrics.GradedMetric", "metrics.PlainMetric", "metrics.Term", "estimators.Law"], "a base class"),
    **dict.fromkeys(["estimators.Correction", "estimators.Estimator"], "a base class"),
    **dict.fromkeys(["metrics.Terms", "metrics.weighted"], "what metrics return"),
    **dict.fromkeys(["estimators.Case", "estimators.CorrectionTable"], "what corrections get and return"),
    **dict.fromkeys(["InputError", "ScoringError"], "an exception"),
    "plots.save": "a part of the figures of the paper",
}
"""Public names that callers do not call with arguments of their own, and why."""

WRONG: list[object] = [7, "no such thing", [object()], None, object()]


def public() -> Iterator[str]:
    """Return what can be called; of the plots those that are drawn in the style of all, the others are their parts."""
    for prefix, module in {"": tr, "metrics.": tr.metrics, "estimators.": tr.estimators}.items():
        yield from (prefix + name for name in dir(module) if callable(getattr(module, name)))
    styled = {name: each for name, each in vars(tr.plots).items() if hasattr(each, "__wrapped__")}
    yield from (f"plots.{name}" for name, each in styled.items() if each.__module__ == tr.plots.__name__)


def called(name: str) -> Any:
    return attrgetter(name)(tr)


def cases() -> list[tuple[str, str]]:
    return [(name, parameter) for name in VALID for parameter in inspect.signature(called(name)).parameters]


def test_every_public_name_is_here() -> None:
    assert set(public()) == {name for name in VALID if not name.startswith("Ranks.")} | set(MADE_ELSEWHERE)


@pytest.mark.parametrize(("name", "parameter"), cases())
def test_wrong_types(name: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in WRONG:
        with suppress(tr.InputError):
            made = called(name)(**VALID[name] | {parameter: wrong})
            if isinstance(made, tr.ScoreStore):
                made.close()
