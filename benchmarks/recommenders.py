"""Training times: IALS against implicit's ALS, to equal losses, and ItemKNN, EASE and Popularity.

implicit weights interactions with c and all other pairs with 1; the target of interactions is 1. IALS's loss has the
same form: divided by alpha, with c = 1 + 1 / alpha, its target for interactions is 1 / (1 + alpha). So factors of
implicit that are trained with the regularization (1 + alpha) / alpha * lambda, divided by the square root of 1 + alpha,
minimise IALS's loss. All start from the same item factors, and one function, which sums over every pair, computes all
losses.

All contenders use two threads and run in one process, alternating, several times; the best wall-clock and CPU times
count, and only ratios are meaningful; those of CPU time are results/recommenders.csv. `--data` names a directory that
`tr.read_split` reads; without it the interactions are synthetic, as many as in MovieLens 1M. implicit solves by three
steps of conjugate gradients, its default.

    python benchmarks/recommenders.py [--data FOLDER] [--factors 16 64 128] [--repeats 2]
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from implicit.cpu.als import AlternatingLeastSquares
from implicit.nearest_neighbours import CosineRecommender
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import truerank as tr
from exact_ranks import Cost, best_costs, versions
from real_ranks import save

THREADS, SWEEPS, NEIGHBOURS = 2, 16, 10
ALPHA, LAMBDA, INIT_SCALE, EASE_LAMBDA = 0.2, 10.0, 0.1, 500.0
TOLERANCE = 1e-3  # losses that differ by less are equal
HEAD = f"{'seconds (CPU)':>18}{'x truerank (CPU)':>20}"
Array = NDArray[Any]
Fit = Callable[[int], tuple[Array, Array]]  # sweeps -> factors of users and items
Row = tuple[str, str, str, str]  # model, factors, contender, CPU time relative to truerank


def make_interactions(n_users: int = 6_040, n_items: int = 3_706) -> sp.csr_matrix:
    """Return skewed interactions with tastes to learn: the first choices of each user."""
    rng = np.random.default_rng(0)
    tastes, traits = (rng.standard_normal((size, 8)) for size in (n_users, n_items))
    appeal = 0.5 * tastes @ traits.T + 1.5 * rng.standard_normal(n_items) + rng.gumbel(size=(n_users, n_items))
    lengths = rng.lognormal(4.55, 1.05, n_users).clip(19, 2_300).astype(np.int64)
    last = np.take_along_axis(np.sort(appeal, axis=1), n_items - lengths[:, None], axis=1)
    return sp.csr_matrix((appeal >= last).astype(np.float32))


def read_interactions(folder: str) -> sp.csr_matrix:
    matrix = tr.read_split(folder).train.matrix
    return sp.csr_matrix((np.ones(matrix.nnz, np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)


def by_truerank(train: sp.csr_matrix, d: int, sweeps: int) -> tuple[Array, Array]:
    ials = tr.IALS(d, alpha=ALPHA, regularization=LAMBDA, sweeps=sweeps, init_scale=INIT_SCALE, rng=0)
    model = ials.fit(train, threads=THREADS)
    return model.user_factors, model.item_factors


def by_implicit(train: sp.csr_matrix, d: int, sweeps: int) -> tuple[Array, Array]:
    scale, penalty = np.sqrt(1 + ALPHA), (1 + ALPHA) / ALPHA * LAMBDA
    settings = {"iterations": sweeps, "num_threads": THREADS, "random_state": 0}
    model = AlternatingLeastSquares(d, regularization=penalty, alpha=1 + 1 / ALPHA, **settings)
    start = INIT_SCALE * np.random.default_rng(0).standard_normal((train.shape[1], d))
    model.item_factors = (scale * start).astype(np.float32)
    model.fit(train, show_progress=False)
    return model.user_factors / scale, model.item_factors / scale


def loss_of(train: sp.csr_matrix, users: Array, items: Array) -> float:
    """Return IALS's loss by its definition, from the score of every pair in float64."""
    users, items = users.astype(np.float64), items.astype(np.float64)
    loss = LAMBDA * (np.sum(users**2) + np.sum(items**2))
    for start in range(0, len(users), 512):
        scores, is_event = users[start : start + 512] @ items.T, train[start : start + 512].toarray() > 0
        loss += np.sum((scores[is_event] - 1) ** 2) + ALPHA * np.sum(scores**2)
    return float(loss)


def compare_ials(train: sp.csr_matrix, d: int, repeats: int) -> list[Row]:
    """Time sweeps after which the losses are equal."""
    fits: dict[str, Fit] = {"truerank": partial(by_truerank, train, d), "implicit": partial(by_implicit, train, d)}
    factors = {}

    def fit(name: str) -> None:
        factors[name] = fits[name](SWEEPS)

    costs = best_costs({name: partial(fit, name) for name in fits}, repeats - 1)
    losses = {name: loss_of(train, *factors[name]) for name in fits}
    assert abs(losses["implicit"] / losses["truerank"] - 1) < TOLERANCE, losses
    print(f"\n{d} factors, {SWEEPS} sweeps; best of {repeats}\n{'':24}{'loss':>10}{HEAD}")
    for name, cost in costs.items():
        print(f"{name:24}{losses[name]:10,.0f}{line(cost, costs['truerank'])}")
    print(f"truerank is {judge(costs['truerank'], costs['implicit'])} than implicit", flush=True)
    return [("IALS", str(d), "implicit", ratio(costs["implicit"], costs["truerank"]))]


def line(cost: Cost, ours: Cost) -> str:
    ratios = f"{cost.wall / ours.wall:.2f} ({cost.cpu / ours.cpu:.2f})"
    return f"{f'{cost.wall:.3f} ({cost.cpu:.3f})':>18}{ratios:>20}"


def ratio(cost: Cost, ours: Cost) -> str:
    return f"{cost.cpu / ours.cpu:.2f}"


def judge(ours: Cost, other: Cost) -> str:
    """Return which is faster, if wall-clock and CPU time agree."""
    ratios = ours.wall / other.wall, ours.cpu / other.cpu
    word = "faster" if max(ratios) < 1 else "SLOWER" if min(ratios) > 1 else "neither faster nor slower"
    return f"{word} ({ratios[0]:.2f} of the time, {ratios[1]:.2f} by CPU)"


def cosine(train: sp.csr_matrix) -> Array:
    """Return the sum of each row of similarities, which does not depend on which of equal neighbours are kept."""
    model = CosineRecommender(K=NEIGHBOURS, num_threads=THREADS)
    model.fit(train, show_progress=False)
    return np.asarray(model.similarity.sum(axis=1)).ravel()


def item_knn(train: sp.csr_matrix) -> Array:
    """Return the same sums; like implicit, count the item itself as a neighbour."""
    knn = tr.ItemKNN(neighbours=NEIGHBOURS, keep_self=True, row_norm=False)
    return np.asarray(knn.fit(train, threads=THREADS).similarity.sum(axis=1)).ravel()


def ease(train: sp.csr_matrix) -> Array:
    return np.asarray(tr.EASE(EASE_LAMBDA).fit(train, threads=THREADS).similarity)


def ease_by_numpy(train: sp.csr_matrix) -> Array:
    gram = (train.T @ train).toarray().astype(np.float64)
    inverse = np.linalg.inv(gram + EASE_LAMBDA * np.eye(len(gram)))
    weights: Array = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return weights


def compare_others(train: sp.csr_matrix, repeats: int) -> list[Row]:
    rows = []
    pairs = {
        "ItemKNN": (item_knn, "implicit's CosineRecommender", cosine),
        "EASE": (ease, "numpy, by definition", ease_by_numpy),
    }
    print(f"\n{'':30}{HEAD}   best of {repeats}")
    for name, (ours, peer, theirs) in pairs.items():
        difference = np.abs(ours(train) - theirs(train)).max()
        costs = best_costs({name: partial(ours, train), peer: partial(theirs, train)}, repeats - 1)
        for label, cost in costs.items():
            print(f"{label:30}{line(cost, costs[name])}")
        print(f"{name} is {judge(costs[name], costs[peer])}; results differ by at most {difference:.0e}", flush=True)
        rows.append((name, "", peer, ratio(costs[peer], costs[name])))
    cost = best_costs({"": partial(tr.Popularity().fit, train)}, repeats - 1)[""]
    print(f"{'Popularity':30}{line(cost, cost)}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FOLDER", help="directory with a train file and a test file")
    parser.add_argument("--factors", type=int, nargs="+", default=[16, 64, 128])
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    train = read_interactions(options.data) if options.data else make_interactions()
    print(versions())
    print(f"{train.shape[0]:,} users, {train.shape[1]:,} items, {train.nnz:,} interactions; {THREADS} threads")
    warnings.filterwarnings("ignore", "Method expects CSR")  # implicit's own intermediate matrix
    with threadpool_limits(1, "blas"):  # as implicit recommends; truerank does not use BLAS
        rows = [row for d in options.factors for row in compare_ials(train, d, options.repeats)]
    with threadpool_limits(THREADS, "blas"):
        rows += compare_others(train, options.repeats)
    save("recommenders.csv", ("model", "factors", "contender", "times truerank"), rows)


if __name__ == "__main__":
    main()
