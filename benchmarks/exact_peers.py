"""How other libraries evaluate given factors: one function per library, for exact_ranks.py.

Each takes the data and a number of threads, builds the library's own objects, and returns a function without arguments:
the evaluation, the only part that is timed. It returns recall@10 and ndcg@10, if the library has them. BLAS always has
one thread: the threads are those of the library, or several products at a time.
"""

import contextlib
import importlib
import logging
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

K = 10
BLOCK = 512  # users whose scores a numpy contender holds at a time
Array = NDArray[Any]
Means = dict[str, float]
Evaluation = Callable[[], Means]


class Data(NamedTuple):
    """Factors of users and items, and training and held-out items as sparse matrices of ones."""

    users: NDArray[np.float32]
    items: NDArray[np.float32]
    train: sp.csr_matrix
    test: sp.csr_matrix

    def head(self, n_users: int) -> "Data":
        if n_users >= len(self.users):
            return self
        return Data(self.users[:n_users], self.items, self.train[:n_users], self.test[:n_users])


class Peer(NamedTuple):
    """A library's evaluation on at most `most` users of the small and of the big shape; its time is scaled."""

    prepare: Callable[[Data, int], Evaluation]
    module: str
    most: tuple[int, int]
    why: str = ""  # the reason if its numbers differ


def by_implicit(data: Data, threads: int) -> Evaluation:
    """Precision is pooled hits over pooled min(k, relevant): recall, if all users have the same number, at most k."""
    from implicit.als import AlternatingLeastSquares
    from implicit.evaluation import ranking_metrics_at_k

    with threadpool_limits(1):  # it warns if there are more
        model = AlternatingLeastSquares(factors=data.items.shape[1], use_gpu=False)
    model.user_factors, model.item_factors = data.users, data.items

    def run() -> Means:
        found = ranking_metrics_at_k(model, data.train, data.test, K=K, show_progress=False, num_threads=threads)
        return {"recall@10": found["precision"], "ndcg@10": found["ndcg"]}

    return run


def by_recometrics(data: Data, threads: int) -> Evaluation:
    import recometrics

    wanted = {"precision": False, "average_precision": False, "recall": True, "ndcg": True}

    def run() -> Means:
        found = recometrics.calc_reco_metrics(*data[2:], *data[:2], k=K, nthreads=threads, **wanted).mean()
        return {"recall@10": float(found[f"R@{K}"]), "ndcg@10": float(found[f"NDCG@{K}"])}

    return run


def by_cornac(data: Data, _: int) -> Evaluation:
    """Always one thread: it evaluates one user at a time, and more threads slow down these small products."""
    from cornac.data import Dataset
    from cornac.eval_methods.base_method import ranking_eval
    from cornac.metrics import NDCG, Recall
    from cornac.models import Recommender

    class Factors(Recommender):  # type: ignore[misc]
        def score(self, user_idx: int, item_idx: Array | None = None) -> Array:
            scores: Array = data.items @ data.users[user_idx]
            return scores if item_idx is None else scores[item_idx]

    def dataset(matrix: sp.csr_matrix) -> Any:
        names = [OrderedDict((number, number) for number in range(size)) for size in matrix.shape]
        return Dataset(*matrix.shape, *names, (*pairs(matrix), matrix.data.astype(np.float64)))

    train, test = dataset(data.train), dataset(data.test)
    model = Factors(name="factors", trainable=False).fit(train)

    def run() -> Means:
        recall, ndcg = ranking_eval(model, [Recall(k=K), NDCG(k=K)], train, test)[0]
        return {"recall@10": float(recall), "ndcg@10": float(ndcg)}

    return run


def by_lenskit(data: Data, _: int) -> Evaluation:
    """Always one process and thread, as for Cornac."""
    import pandas as pd
    from lenskit.batch import recommend
    from lenskit.data import DatasetBuilder, ItemList, ItemListCollection, RecQuery
    from lenskit.metrics import NDCG, Recall, RunAnalysis
    from lenskit.pipeline import Component, topn_pipeline

    class Factors(Component):  # type: ignore[misc]
        config: None

        def __call__(self, query: RecQuery, items: ItemList) -> ItemList:
            return ItemList(items, scores=data.items[items.ids()] @ data.users[query.user_id])

    def frame(matrix: sp.csr_matrix) -> pd.DataFrame:
        return pd.DataFrame(dict(zip(("user_id", "item_id"), pairs(matrix), strict=True)))

    builder = DatasetBuilder()
    builder.add_entities("item", np.arange(len(data.items)))  # otherwise only items with interactions are candidates
    builder.add_entities("user", np.arange(len(data.users)))
    builder.add_interactions("rating", frame(data.train), entities=["user", "item"], missing="error", default=True)
    truth = ItemListCollection.from_df(frame(data.test), ["user_id"])
    pipeline = topn_pipeline(Factors(), n=K)
    pipeline.train(builder.build())
    analysis = RunAnalysis()
    for metric in (Recall(n=K), NDCG(n=K)):
        analysis.add_metric(metric)

    def run() -> Means:
        lists = recommend(pipeline, np.arange(len(data.users)), n=K, n_jobs=1)
        means = analysis.measure(lists, truth).list_summary()["mean"]
        return {f"{name}@10": float(means[f"{label}@{K}"]) for name, label in (("recall", "Recall"), ("ndcg", "NDCG"))}

    return run


def by_recbole(data: Data, threads: int) -> Evaluation:
    return _recbole(data, threads, "full")


def by_recbole_sampled(data: Data, threads: int) -> Evaluation:
    return _recbole(data, threads, "uni100")


def _recbole(data: Data, threads: int, mode: str) -> Evaluation:
    """From files, which RecBole requires, to its Trainer.evaluate; sampling is part of the evaluation."""
    torch: Any = importlib.import_module("torch")
    for name, kind in {"float_": np.float64, "complex_": np.complex128, "unicode_": np.str_}.items():
        setattr(np, name, kind)  # RecBole 1.2.1 uses these names of an older numpy
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.model.general_recommender import BPR
    from recbole.trainer import Trainer

    settings = {
        "benchmark_filename": ["train", "test", "test"],
        "load_col": {"inter": ["user_id", "item_id"], "item": ["item_id"]},
        "embedding_size": data.items.shape[1],
        "eval_args": {"split": {"RS": [8, 1, 1]}, "group_by": "user", "order": "RO", "mode": mode},
        "eval_batch_size": 4_096_000,  # in scores: a thousand times the default, which is slower
        "metrics": ["Recall", "NDCG"],
        "topk": [K],
        "valid_metric": f"Recall@{K}",
        "metric_decimal_place": 9,
        "train_neg_sample_args": None,
        "use_gpu": False,
        "worker": 0,
        "show_progress": False,
        "state": "ERROR",
    }
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # it leaves files in the working directory
        _write_for_recbole(Path("d"), data)
        config = Config(model="BPR", dataset="d", config_dict={**settings, "data_path": folder})
        dataset = create_dataset(config)
        loader = data_preparation(config, dataset)[2]
        model = BPR(config, dataset)
        trainer = Trainer(config, model)
    logging.disable(logging.NOTSET)
    embeddings = {"user_id": (model.user_embedding, data.users), "item_id": (model.item_embedding, data.items)}
    for field, (embedding, factors) in embeddings.items():  # it renumbers users and items, from 1
        order = dataset.id2token(field, np.arange(1, dataset.num(field))).astype(np.int64)
        embedding.weight.data[1:] = torch.from_numpy(factors[order])

    def run() -> Means:
        torch.set_num_threads(threads)
        found = trainer.evaluate(loader, load_best_model=False, show_progress=False)
        return {f"{name}@10": float(found[f"{name}@{K}"]) for name in ("recall", "ndcg")}

    return run


def _write_for_recbole(folder: Path, data: Data) -> None:
    folder.mkdir()
    for name in ("train", "test"):
        lines = (f"{user}\t{item}" for user, item in zip(*pairs(getattr(data, name)), strict=True))
        (folder / f"d.{name}.inter").write_text("\n".join(["user_id:token\titem_id:token", *lines, ""]))
    catalogue = "\n".join(["item_id:token", *map(str, range(len(data.items))), ""])
    (folder / "d.item").write_text(catalogue)  # otherwise items without interactions are left out


def by_argsort(data: Data, threads: int) -> Evaluation:
    return _numpy(data, threads, lambda scores: np.argsort(scores, axis=1)[:, : -K - 1 : -1])


def by_argpartition(data: Data, threads: int) -> Evaluation:
    def top(scores: Array) -> Array:
        best = np.argpartition(scores, -K, axis=1)[:, -K:]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        return np.take_along_axis(best, order, axis=1)

    return _numpy(data, threads, top)


def by_topk(data: Data, threads: int) -> Evaluation:
    torch: Any = importlib.import_module("torch")

    def top(scores: Array) -> Array:
        torch.set_num_threads(1)  # the threads are those of blocks; others may have changed it
        best: Array = torch.topk(torch.from_numpy(scores), K, dim=1).indices.numpy()
        return best

    return _numpy(data, threads, top)


def _numpy(data: Data, threads: int, top: Callable[[Array], Array]) -> Evaluation:
    """Score a block of users, mask their training items, and look up the held-out items in the top of the list."""

    def hits(start: int) -> Array:
        train, test = (matrix[start : start + BLOCK] for matrix in data[2:])
        scores = data.users[start : start + BLOCK] @ data.items.T
        scores[pairs(train)] = -np.inf
        held: Array = np.zeros(scores.shape, np.bool_)
        held[pairs(test)] = True
        return np.take_along_axis(held, top(scores), axis=1)

    def run() -> Means:
        with ThreadPoolExecutor(threads) as pool:
            found = np.concatenate(list(pool.map(hits, range(0, len(data.users), BLOCK))))
        return _means(found, np.diff(data.test.indptr))

    return run


def by_numpy_sampled(data: Data, threads: int, n_negatives: int = 100) -> Evaluation:
    """Draw negatives with replacement for each held-out item, redrawing those that are items of the user."""
    n_items = len(data.items)
    interactions = np.sort(np.concatenate([users * n_items + items for users, items in map(pairs, data[2:])]))
    users, items = pairs(data.test)

    def above(start: int) -> Array:
        rng = np.random.default_rng(start)
        owner, held = users[start : start + BLOCK], items[start : start + BLOCK]
        drawn = rng.integers(0, n_items, (len(owner), n_negatives))
        while (again := _among(drawn + owner[:, None] * n_items, interactions)).any():
            drawn[again] = rng.integers(0, n_items, int(again.sum()))
        factors = data.users[owner][:, :, None]
        scores = (data.items[drawn] @ factors)[:, :, 0]
        own = np.einsum("ij,ij->i", data.items[held], data.users[owner])
        return np.count_nonzero(scores > own[:, None], axis=1)

    def run() -> Means:
        with ThreadPoolExecutor(threads) as pool:
            ranks = np.concatenate(list(pool.map(above, range(0, len(users), BLOCK))))
        return {"recall@10": float(np.mean(ranks < K))}

    return run


def _among(keys: Array, ascending: Array) -> Array:
    positions = np.searchsorted(ascending, keys)
    return ascending[np.minimum(positions, len(ascending) - 1)] == keys


def _means(hits: Array, n_relevant: Array) -> Means:
    gains = 1 / np.log2(np.arange(2, K + 2))
    ideal = np.cumsum(gains)[np.minimum(n_relevant, K) - 1]
    return {"recall@10": float(np.mean(hits.sum(axis=1) / n_relevant)), "ndcg@10": float(np.mean(hits @ gains / ideal))}


def pairs(matrix: sp.csr_matrix) -> tuple[Array, Array]:
    """Return row and column of each entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices.astype(np.int64)


ALL = 10**9
SAMPLED = "100 sampled negatives are a different, easier problem"
PEERS = {
    "implicit": Peer(by_implicit, "implicit", (ALL, ALL)),
    "recometrics": Peer(by_recometrics, "recometrics", (ALL, 1_000)),
    "numpy argpartition": Peer(by_argpartition, "numpy", (ALL, 3_072)),
    "numpy argsort": Peer(by_argsort, "numpy", (ALL, 1_024)),
    "torch.topk": Peer(by_topk, "torch", (ALL, 3_072)),
    "RecBole": Peer(by_recbole, "recbole", (ALL, 3_000)),
    "Cornac": Peer(by_cornac, "cornac", (1_500, 300)),
    "LensKit": Peer(by_lenskit, "lenskit", (600, 200), "its ndcg discounts by max(log2(rank), 1)"),
}
SAMPLED_PEERS = {
    "RecBole uni100": Peer(by_recbole_sampled, "recbole", (ALL, 500), SAMPLED),
    "numpy, 100 negatives": Peer(by_numpy_sampled, "numpy", (ALL, 3_000), SAMPLED),
}
