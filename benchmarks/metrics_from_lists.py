"""From dataframes of ranked lists to five metrics: truerank against ranx, pytrec_eval and RePlay.

100,000 users, lists of 100, 10 relevant items each. Each contender starts from the same two dataframes, so the
time to build its own objects counts. All run in one process, alternating, and must agree on the numbers; the best CPU
times and their ratios are results/metrics_from_lists.csv. The first call in a fresh process, with imports and
compilation, is timed separately. A library that is not installed is left out.

    python benchmarks/metrics_from_lists.py [--users 100000] [--repeats 3]
"""

import argparse
import importlib.util
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import polars as pl

from real_ranks import save

K = 10
METRICS = ("precision", "recall", "ap", "ndcg", "rr")
Means = dict[str, float]
Contender = Callable[[pl.DataFrame, pl.DataFrame], Means]


def make_frames(n_users: int, length: int = 100, n_items: int = 20_000) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return lists in order of score without ties, and ten relevant items per user, about half of them listed."""
    rng = np.random.default_rng(0)
    # one item from each of `length` sections of the catalogue: distinct for each user, and fast to draw
    items = rng.integers(0, n_items // length, (n_users, length)) + np.arange(length) * (n_items // length)
    items = rng.permuted(items, axis=1)
    listed = np.argsort(rng.random((n_users, length)), axis=1)[:, :5]
    unlisted = np.tile(n_items + np.arange(5), (n_users, 1))
    relevant = np.concatenate([np.take_along_axis(items, listed, axis=1), unlisted], axis=1)
    users, scores = np.arange(n_users), np.linspace(1.0, 0.0, length)
    run = {"user_id": np.repeat(users, length), "item_id": items.ravel(), "score": np.tile(scores, n_users)}
    return pl.DataFrame(run), pl.DataFrame({"user_id": np.repeat(users, 10), "item_id": relevant.ravel()})


def by_truerank(run: pl.DataFrame, truth: pl.DataFrame) -> Means:
    import truerank as tr

    table = tr.evaluate(tr.read_lists(run, truth), [f"{metric}@{K}" for metric in METRICS])
    return {metric: table[f"{metric}@{K}"].mean for metric in METRICS}


def by_ranx(run: pl.DataFrame, truth: pl.DataFrame) -> Means:
    from ranx import Qrels, Run, evaluate

    warnings.filterwarnings("ignore", message="unsafe cast from uint64 to int64")
    names = [f"{name}@{K}" for name in ("precision", "recall", "map", "ndcg", "mrr")]
    found = evaluate(Qrels(nested(truth)), Run(nested(run)), names, save_results_in_run=False)
    return dict(zip(METRICS, (float(found[name]) for name in names), strict=True))


def by_pytrec_eval(run: pl.DataFrame, truth: pl.DataFrame) -> Means:
    """Cut the lists first: trec_eval has no reciprocal rank at k, and shorter dicts only make it faster."""
    import pytrec_eval

    cut = run.sort("score", descending=True).group_by("user_id", maintain_order=True).head(K)
    names = [f"P_{K}", f"recall_{K}", f"map_cut_{K}", f"ndcg_cut_{K}", "recip_rank"]
    wanted = {f"P.{K}", f"recall.{K}", f"map_cut.{K}", f"ndcg_cut.{K}", "recip_rank"}
    found = pytrec_eval.RelevanceEvaluator(nested(truth), wanted).evaluate(nested(cut))
    means = np.array([[values[name] for name in names] for values in found.values()]).mean(axis=0)
    return dict(zip(METRICS, means.tolist(), strict=True))


def by_replay(run: pl.DataFrame, truth: pl.DataFrame) -> Means:
    from replay.metrics import MAP, MRR, NDCG, OfflineMetrics, Precision, Recall

    kinds = (Precision, Recall, MAP, NDCG, MRR)
    columns = {"query_column": "user_id", "item_column": "item_id", "rating_column": "score"}
    found = OfflineMetrics([kind(K) for kind in kinds], **columns)(run, truth)
    return dict(zip(METRICS, (float(found[f"{kind.__name__}@{K}"]) for kind in kinds), strict=True))


def nested(frame: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return {user: {item: score}} with text ids, which ranx and pytrec_eval need, in the fastest way we found."""
    score = pl.col("score") if "score" in frame.columns else pl.lit(1).alias("score")
    text = frame.select(pl.col("user_id").cast(pl.String), pl.col("item_id").cast(pl.String), score)
    lists = text.group_by("user_id", maintain_order=True).agg("item_id", "score")
    columns = (lists[name].to_list() for name in ("user_id", "item_id", "score"))
    return {user: dict(zip(items, scores, strict=True)) for user, items, scores in zip(*columns, strict=True)}


MODULES: dict[str, tuple[str, Contender]] = {
    "truerank": ("truerank", by_truerank),
    "ranx": ("ranx", by_ranx),
    "pytrec_eval": ("pytrec_eval", by_pytrec_eval),
    "RePlay (polars)": ("replay", by_replay),
}
CONTENDERS = {name: contender for name, (module, contender) in MODULES.items() if importlib.util.find_spec(module)}


def first_call(name: str) -> float:
    """Return the CPU seconds of the first call in a fresh process on 100 users, with imports and compilation."""
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from metrics_from_lists import CONTENDERS, make_frames\n"
        "frames = make_frames(100); start = time.process_time()\n"
        "CONTENDERS[sys.argv[2]](*frames); print(time.process_time() - start)"
    )
    folder = __file__.rpartition("/")[0] or "."
    command = [sys.executable, "-W", "ignore", "-c", script, folder, name]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def timed(contender: Contender, frames: tuple[pl.DataFrame, pl.DataFrame]) -> tuple[float, Means]:
    start = time.process_time()
    means = contender(*frames)
    return time.process_time() - start, means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    first = {name: first_call(name) for name in CONTENDERS}
    frames = make_frames(options.users)
    best = dict.fromkeys(CONTENDERS, float("inf"))
    expected = by_truerank(*frames)
    for _ in range(options.repeats):
        for name, contender in CONTENDERS.items():
            seconds, means = timed(contender, frames)
            best[name] = min(best[name], seconds)
            assert all(abs(means[metric] - expected[metric]) < 1e-6 for metric in METRICS), (name, means, expected)
    rows = [
        (name, f"{best[name]:.2f}", f"{best[name] / best['truerank']:.1f}", f"{first[name]:.2f}") for name in CONTENDERS
    ]
    header = ("contender", "CPU seconds", "times truerank", "first call")
    save("metrics_from_lists.csv", header, rows)
    print(f"{options.users} users, lists of 100, 10 relevant, {', '.join(METRICS)} at {K}; best of {options.repeats}")
    for row in (header, *rows):
        print(*(f"{cell:>16}" for cell in row))


if __name__ == "__main__":
    main()
