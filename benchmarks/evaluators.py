"""What the evaluators of other libraries do: ``python benchmarks/evaluators.py`` checks those that are installed.

Each function below calls the metrics of a library as its documentation shows, on the lists and truth of
`truerank.check_evaluator`, and does nothing else: what a library drops, raises or counts twice is its own.
Findings are kept in results/evaluators.csv, from which docs/make_measured.py writes the tables of docs/libraries.md.
Run it in the environments `.venv-peers` and `.venv-models`, which have different libraries.
"""

import argparse
import csv
import logging
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import truerank as tr

Run = dict[str, list[tuple[str, float]]]
Truth = dict[str, list[str]]
Values = dict[str, float]


def listed_for(run: Run, user: str) -> list[tuple[str, float]]:
    """Return the list of a user, for a library that has no way to say that there is none."""
    if user not in run:
        raise NotImplementedError
    return run[user]


def without_repeats(run: Run) -> Run:
    """Return the lists, for a library whose input can't hold an item twice, or does not name items."""
    if any(len(dict(items)) < len(items) for items in run.values()):
        raise NotImplementedError
    return run


def hits_of(run: Run, truth: Truth, k: int) -> list[list[bool]]:
    """Return the hits of ordered lists, for a library that has ordered and cut them, and chosen users, before."""
    if any(len(items) < k for items in run.values()) or not all(truth.values()):
        raise NotImplementedError
    return [[item in truth[user] for item, _ in listed_for(without_repeats(run), user)[:k]] for user in truth]


def all_items(run: Run, truth: Truth) -> list[str]:
    """Return the items that occur, in the order of their names."""
    return sorted(
        {item for listed in run.values() for item, _ in listed} | {item for one in truth.values() for item in one}
    )


def ranx(run: Run, truth: Truth, k: int) -> Values:
    import ranx

    names = {"precision": "precision", "recall": "recall", "ap": "map", "ndcg": "ndcg", "rr": "mrr", "hr": "hit_rate"}
    qrels = ranx.Qrels({user: dict.fromkeys(items, 1) for user, items in truth.items()})
    lists = ranx.Run({user: dict(items) for user, items in without_repeats(run).items()})
    found = ranx.evaluate(qrels, lists, [f"{theirs}@{k}" for theirs in names.values()])
    return {ours: found[f"{theirs}@{k}"] for ours, theirs in names.items()}


def ir_measures(run: Run, truth: Truth, k: int) -> Values:
    import ir_measures

    names = {"precision": "P", "recall": "R", "ap": "AP", "ndcg": "nDCG", "rr": "RR", "hr": "Success"}
    qrels = [ir_measures.Qrel(user, item, 1) for user, items in truth.items() for item in items]
    lists = [ir_measures.ScoredDoc(user, item, score) for user, items in run.items() for item, score in items]
    measures = {ours: ir_measures.parse_measure(f"{theirs}@{k}") for ours, theirs in names.items()}
    found = ir_measures.calc_aggregate(measures.values(), qrels, lists)
    return {ours: found[measure] for ours, measure in measures.items()}


def pytrec_eval(run: Run, truth: Truth, k: int) -> Values:
    import pytrec_eval

    names = {"precision": f"P_{k}", "recall": f"recall_{k}", "ap": f"map_cut_{k}", "ndcg": f"ndcg_cut_{k}"}
    qrels = {user: dict.fromkeys(items, 1) for user, items in truth.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(names.values()))
    found = evaluator.evaluate({user: dict(items) for user, items in without_repeats(run).items()})
    return {ours: float(np.mean([one[theirs] for one in found.values()])) for ours, theirs in names.items()}


def rectools(run: Run, truth: Truth, k: int) -> Values:
    import pandas as pd
    from rectools import metrics

    lists = [(user, item, rank) for user, items in run.items() for rank, (item, _) in enumerate(items, start=1)]
    pairs = [(user, item) for user, items in truth.items() for item in items]
    recommended = pd.DataFrame(lists, columns=["user_id", "item_id", "rank"])
    relevant = pd.DataFrame(pairs, columns=["user_id", "item_id"])
    kinds = {"precision": metrics.Precision, "recall": metrics.Recall, "ap": metrics.MAP, "ndcg": metrics.NDCG,
             "rr": metrics.MRR, "hr": metrics.HitRate}  # fmt: skip
    return {ours: kind(k=k).calc(recommended, relevant) for ours, kind in kinds.items()}


def scikit_learn(run: Run, truth: Truth, k: int) -> Values:
    from sklearn.metrics import ndcg_score

    items = all_items(run, truth)
    scores, hits = np.full((len(truth), len(items)), -1e6), np.zeros((len(truth), len(items)))
    for row, user in enumerate(truth):
        for item, score in listed_for(without_repeats(run), user):
            scores[row, items.index(item)] = score
        hits[row, [items.index(item) for item in truth[user]]] = 1
    return {"ndcg": ndcg_score(hits, scores, k=k)}


def torchmetrics(run: Run, truth: Truth, k: int) -> Values:
    import torch
    from torchmetrics import retrieval

    rows = []
    for at, user in enumerate(truth):
        listed = listed_for(without_repeats(run), user)
        missed, last = {*truth[user]} - {*dict(listed)}, min(score for _, score in listed)
        rows += [(score, item in truth[user], at) for item, score in listed] + [(last - 1.0, True, at) for _ in missed]
    scores, hits, users = (torch.tensor(column) for column in zip(*rows, strict=True))
    kinds = {
        "precision": retrieval.RetrievalPrecision,
        "recall": retrieval.RetrievalRecall,
        "ap": retrieval.RetrievalMAP,
        "ndcg": retrieval.RetrievalNormalizedDCG,
        "rr": retrieval.RetrievalMRR,
        "hr": retrieval.RetrievalHitRate,
    }
    return {ours: float(kind(top_k=k)(scores, hits, indexes=users)) for ours, kind in kinds.items()}


def implicit(run: Run, truth: Truth, k: int) -> Values:
    import scipy.sparse as sp
    from implicit.evaluation import ranking_metrics_at_k

    if any(len(listed) < k for listed in run.values()):  # its models return k items, and it reads as many
        raise NotImplementedError
    items, users = all_items(run, truth), list(truth)

    class Lists:
        """Recommends the given lists."""

        def recommend(self, numbers: Any, _rows: Any, N: int = 10, **_: Any) -> Any:
            listed = [[items.index(item) for item, _ in listed_for(run, users[user])][:N] for user in numbers]
            return np.array(listed, dtype=np.int32), np.zeros((len(listed), N))

    pairs = [(row, items.index(item)) for row, user in enumerate(users) for item in truth[user]]
    test = sp.csr_matrix((np.ones(len(pairs)), tuple(zip(*pairs, strict=True))), shape=(len(users), len(items)))
    train = sp.csr_matrix(test.shape)
    found = ranking_metrics_at_k(Lists(), train, test, K=k, show_progress=False)
    return {"precision": found["precision"], "ap": found["map"], "ndcg": found["ndcg"]}


def cornac(run: Run, truth: Truth, k: int) -> Values:
    from cornac import metrics

    items = all_items(run, truth)
    kinds = {
        "precision": metrics.Precision(k),
        "recall": metrics.Recall(k),
        "ndcg": metrics.NDCG(k),
        "hr": metrics.HitRatio(k),
    }
    if not all(truth.values()):  # its evaluation does not ask for such users
        raise NotImplementedError
    rows = []
    for user in truth:
        listed = np.array([items.index(item) for item, _ in listed_for(without_repeats(run), user)])
        relevant = np.array([items.index(item) for item in truth[user]])
        rows.append({ours: kind.compute(gt_pos=relevant, pd_rank=listed) for ours, kind in kinds.items()})
    return {ours: float(np.mean([row[ours] for row in rows])) for ours in kinds}


def recbole(run: Run, truth: Truth, k: int) -> Values:
    for name, kept in {"float_": np.float64, "complex_": np.complex128, "unicode_": np.str_, "float": float}.items():
        vars(np).setdefault(name, kept)  # which NumPy had when RecBole 1.2.1 was written
    from recbole.evaluator import metrics

    config = {"topk": [k], "metric_decimal_place": 8}
    hits, sizes = np.array(hits_of(run, truth, k)), np.array([len(items) for items in truth.values()])
    names = {"precision": "Precision", "recall": "Recall", "ap": "MAP", "ndcg": "NDCG", "rr": "MRR", "hr": "Hit"}
    found = {}
    for ours, theirs in names.items():
        metric, sized = getattr(metrics, theirs)(config), theirs in ("Recall", "MAP", "NDCG")
        found[ours] = float((metric.metric_info(hits, sizes) if sized else metric.metric_info(hits))[:, -1].mean())
    return found


LIBRARIES: dict[str, tuple[str, Callable[[Run, Truth, int], Values]]] = {
    "ranx": ("ranx", ranx),
    "ir-measures": ("ir-measures", ir_measures),
    "pytrec_eval": ("pytrec-eval-terrier", pytrec_eval),
    "RecTools": ("rectools", rectools),
    "scikit-learn": ("scikit-learn", scikit_learn),
    "torchmetrics": ("torchmetrics", torchmetrics),
    "implicit": ("implicit", implicit),
    "Cornac": ("cornac", cornac),
    "RecBole": ("recbole", recbole),
}
RESULTS = Path(__file__).parent / "results" / "evaluators.csv"
COLUMNS = ("library", "version", "question", "kind", "answer")


def main() -> None:
    """Put what is found in the place of earlier findings about the same libraries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "libraries", nargs="*", choices=[*LIBRARIES, []], help="Those to check (default: all installed)."
    )
    chosen = parser.parse_args().libraries or list(LIBRARIES)
    warnings.simplefilter("ignore")
    logging.disable()
    found = {name: checked(name) for name in chosen if is_installed(name)}
    earlier = csv.DictReader(RESULTS.read_text(encoding="utf-8").splitlines()) if RESULTS.exists() else ()
    rows = [row for row in earlier if row["library"] not in found] + [row for own in found.values() for row in own]
    rows.sort(key=lambda row: list(LIBRARIES).index(row["library"]))
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def is_installed(name: str) -> bool:
    try:
        return bool(version(LIBRARIES[name][0]))
    except PackageNotFoundError:
        return False


def checked(name: str) -> list[dict[str, str]]:
    """Return the rows of a library."""
    package, evaluate = LIBRARIES[name]
    answers = [(each.question, each.kind, each.answer) for each in tr.check_evaluator(evaluate)]
    return [dict(zip(COLUMNS, (name, version(package), *own), strict=True)) for own in answers]


if __name__ == "__main__":
    main()
