"""Real data, where it is at hand: exact ranks against a slow reference on users drawn at random."""

import numpy as np
import pytest
import scipy.sparse as sp

import truerank as tr
from tests import shared
from tests.arrays import AnyArray
from truerank.data.event_files import read_pairs
from truerank.papers.krichene_rendle_2020 import movielens as experiment

DATA = shared.DATA
SHAPES = {"ml-1m-leave-last-out": (6_040, 3_706), "gowalla": (29_858, 40_981)}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the folder ../shared/data is not there")


def coarse_factors(train: sp.csr_array, factors: int) -> tuple[AnyArray, AnyArray]:
    """Return factors that follow the data, in multiples of 1/8 so that every sum is exact in float32."""
    rng = np.random.default_rng(0)
    items = rng.normal(size=(train.shape[1], factors))
    users = train @ items
    users /= np.abs(users).max() + 1e-12
    items = train.T @ users
    scale = np.abs(items).max(axis=1, keepdims=True) + 1e-12
    return [np.round(8 * part).astype(np.float32) / 8 for part in (users * 4, items / scale * 2)]  # type: ignore[return-value]


@pytest.mark.parametrize("name", SHAPES)
def test_exact_ranks_of_users_at_random(name: str) -> None:
    shape = SHAPES[name]
    train, test = (read_pairs(DATA / name / f"{part}.tsv.gz", shape) for part in ("train", "test"))
    users, items = coarse_factors(train.matrix, 16)
    ranks = tr.rank(tr.Factors(users, items), train=train, test=test)
    assert ranks.tied_share > 0.5, "multiples of 1/8 should tie often"
    assert ranks.ids is not None
    chosen = np.random.default_rng(1).choice(len(ranks), 300, replace=False)
    for place in chosen:
        user = ranks.ids[place]
        scores = users[user].astype(np.float64) @ items.T.astype(np.float64)
        relevant = test.matrix[[user]].indices
        irrelevant = np.setdiff1d(np.arange(shape[1]), np.union1d(relevant, train.matrix[[user]].indices))
        targets = np.sort(scores[relevant])[::-1]
        others = scores[irrelevant]
        part = ranks[int(place)]
        assert part.above.tolist() == [int((others > target).sum()) for target in targets]
        assert part.tied.tolist() == [int((others == target).sum()) for target in targets]
        assert part.n_candidates[0] == irrelevant.size + relevant.size


def test_embedded_ranks_of_the_paper_come_from_these_data() -> None:
    split = experiment.load_split(DATA / "ml-1m-leave-last-out")
    embedded = experiment.embedded()
    for recommender, known in (
        (experiment.X[7], embedded.x[7]),
        (experiment.Y, embedded.y),
        (experiment.Z, embedded.z),
    ):
        ranks = tr.rank(recommender.fit(split.train), split)
        assert ranks.above.tolist() == known.above.tolist()
        assert ranks.tied.tolist() == known.tied.tolist()
        assert ranks.n_candidates.tolist() == known.n_candidates.tolist()
