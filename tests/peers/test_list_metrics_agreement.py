"""Metrics of lists against RecTools, where its definition is the same, and the difference where it is not."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import truerank as tr

rectools = pytest.importorskip("rectools.metrics", reason="install the extra 'peers'")


def random_data(seed: int) -> tuple[tr.Interactions, tr.Recommendations, tr.Recommendations]:
    rng = np.random.default_rng(seed)
    train = tr.Interactions.of([rng.permutation(60)[:12].tolist() for _ in range(40)], "train", n_items=60)
    lists = [tr.recommend(rng.standard_normal((40, 60)), train=train, k=10) for _ in range(2)]
    return train, lists[0], lists[1]


def as_rectools(lists: tr.Recommendations) -> pd.DataFrame:
    names = {"user": "user_id", "item": "item_id"}
    return lists.to_frame().rename(columns=names)


def history(train: tr.Interactions) -> pd.DataFrame:
    return pd.DataFrame({"user_id": train.users, "item_id": train.items})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 5, 10])
def test_popularity_and_novelty(seed: int, k: int) -> None:
    train, lists, _ = random_data(seed)
    table = tr.evaluate(lists, [f"popularity@{k}", f"novelty@{k}"], train=train)
    frames: Any = (as_rectools(lists), history(train))
    assert table[f"popularity@{k}"].mean == pytest.approx(rectools.AvgRecPopularity(k).calc(*frames), abs=1e-12)
    assert table[f"novelty@{k}"].mean == pytest.approx(rectools.MeanInvUserFreq(k).calc(*frames), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 5, 10])
def test_coverage_and_overlap(seed: int, k: int) -> None:
    _, one, other = random_data(seed)
    table = tr.evaluate({"one": one, "other": other}, [f"coverage@{k}", f"overlap@{k}"])
    catalogue = np.arange(60)
    coverage = rectools.CatalogCoverage(k, normalize=True).calc(as_rectools(one), catalogue)
    assert table["one", f"coverage@{k}"].mean == pytest.approx(coverage, abs=1e-12)
    shared = rectools.Intersection(k).calc(as_rectools(other), as_rectools(one))
    assert table["other", f"overlap@{k}"].mean == pytest.approx(shared, abs=1e-12)


class CosineDistances:
    """Distances as RecTools asks for them: ``calculator[items, others]`` returns one per pair."""

    def __init__(self, vectors: Any) -> None:
        self.unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def __getitem__(self, pairs: Any) -> Any:
        first, second = (self.unit[np.asarray(items)] for items in pairs)
        return 1 - (first * second).sum(axis=1)


@pytest.mark.parametrize("k", [2, 5, 10])
def test_intra_list_distance(k: int) -> None:
    _, lists, _ = random_data(0)
    vectors = np.random.default_rng(1).standard_normal((60, 4))
    expected = rectools.IntraListDiversity(k, CosineDistances(vectors)).calc(as_rectools(lists))
    found = tr.evaluate(lists, f"intra-list-distance@{k}", item_vectors=vectors)
    assert found[f"intra-list-distance@{k}"].mean == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 5, 10])
def test_serendipity(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    # no two items are equally popular
    train = tr.Interactions.of([list(range(user % 60 + 1)) for user in range(60)], "train", n_items=60)
    lists = tr.recommend(rng.standard_normal((60, 60)), k=10)
    truth = pd.DataFrame(
        {"user_id": np.repeat(np.arange(60), 5), "item_id": rng.integers(0, 60, 300)}
    ).drop_duplicates()
    expected = rectools.Serendipity(k).calc(as_rectools(lists), truth, history(train), np.arange(60))
    found = tr.evaluate(lists, f"serendipity@{k}", train=train, truth=truth)
    assert found[f"serendipity@{k}"].mean == pytest.approx(expected, abs=1e-12)
