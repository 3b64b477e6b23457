"""One suite for all recommenders: a known answer, determinism, files, bad input, and what `rank` does."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import truerank as tr
from truerank.recommenders.models import FactorModel, SimilarityModel

PERSONAL = [
    tr.IALS(factors=2, regularization=0.1, rng=0),
    tr.IALS(factors=9, regularization=0.001, frequency_exponent=1.0, rng=0),
    tr.IALS(factors=70, regularization=0.1, rng=0),
    tr.ItemKNN(),
    tr.ItemKNN(power=3.0, keep_self=True),
    tr.ItemKNN(neighbours=9),
    tr.ItemKNN(neighbours=2, keep="row", divide=True),
    tr.ItemKNN(neighbours=9, row_norm=False),
    tr.EASE(regularization=1.0),
]
EVERY = [*PERSONAL, tr.Popularity()]

every = pytest.mark.parametrize("recommender", EVERY, ids=repr)


def checkerboard(n: int) -> sp.csr_array:
    """Even users have all even items, odd users all odd ones."""
    return sp.csr_array(((np.arange(n)[:, None] + np.arange(n)) % 2 == 0).astype(np.int8))


def random_split(seed: int = 0, n_users: int = 300, n_items: int = 90) -> tr.Split:
    """Interactions of two groups with tastes of their own, one in ten held out; user 7 and item 5 have none."""
    rng = np.random.default_rng(seed)
    taste = np.where((np.arange(n_users)[:, None] + np.arange(n_items)) % 2 == 0, 0.3, 0.05)
    known = rng.random((n_users, n_items)) < taste
    known[7], known[:, 5] = False, False
    held = known & (rng.random(known.shape) < 0.1)
    train, test = (tr.Interactions.of(sp.csr_array(part.astype(np.int8)), "x") for part in (known & ~held, held))
    return tr.Split(train, test)


def arrays(model: FactorModel | SimilarityModel) -> Iterable[Any]:
    if isinstance(model, FactorModel):
        return (model.user_factors, model.item_factors)
    similarity: Any = model.similarity
    return (similarity.toarray() if hasattr(similarity, "toarray") else similarity, model.history.toarray())


@pytest.mark.parametrize("recommender", PERSONAL, ids=repr)
def test_finds_what_is_missing_from_a_checkerboard(recommender: Any) -> None:
    whole = checkerboard(20)
    held = sp.csr_array(sp.eye_array(20).astype(np.int8))
    train = sp.csr_array(whole - held)
    train.eliminate_zeros()
    ranks = tr.rank(recommender.fit(train), train=train, test=held)
    assert ranks.rank.tolist() == [1] * 20
    assert not ranks.tied.any()


@every
def test_same_model_for_any_number_of_threads(recommender: Any) -> None:
    if isinstance(recommender, tr.IALS):
        recommender = dataclasses.replace(recommender, sweeps=2)
    train = random_split(n_users=9000, n_items=60).train
    once, again, alone = (recommender.fit(train, threads=threads) for threads in (3, 2, 1))
    for left, middle, right in zip(arrays(once), arrays(again), arrays(alone), strict=True):
        np.testing.assert_array_equal(left, middle)
        np.testing.assert_array_equal(left, right)


@every
def test_only_what_is_stored_counts(recommender: Any) -> None:
    train = random_split().train.matrix
    ratings = train.copy().astype(np.float64)
    ratings.data = np.random.default_rng(1).integers(0, 6, train.nnz).astype(np.float64)
    lists = np.split(train.indices, train.indptr[1:-1])
    models = [recommender.fit(given) for given in (train, ratings, tr.Interactions(train), list(lists))]
    for model in models[1:]:
        for left, right in zip(arrays(models[0]), arrays(model), strict=True):
            np.testing.assert_array_equal(left, right)


@every
def test_learning_changes_neither_settings_nor_data(recommender: Any) -> None:
    train = random_split().train
    before, settings = train.matrix.copy(), repr(recommender)
    recommender.fit(train)
    assert repr(recommender) == settings
    np.testing.assert_array_equal(before.toarray(), train.matrix.toarray())


@every
def test_save_and_load(recommender: Any, tmp_path: Path) -> None:
    split = random_split()
    model = recommender.fit(split.train)
    model.save(tmp_path / "model.npz")
    loaded = tr.load_model(tmp_path / "model.npz")
    assert type(loaded) is type(model)
    assert loaded.recommender == recommender
    assert tr.rank(loaded, split) == tr.rank(model, split)


def shuffled(split: tr.Split, seed: int) -> tr.Split:
    """Return the same interactions, with users and items numbered in another order."""
    rng = np.random.default_rng(seed)
    users, items = rng.permutation(split.train.n_users), rng.permutation(split.train.n_items)
    train, test = (
        tr.Interactions(part.matrix[users][:, items], part.names[users], part.item_names[items])
        for part in (split.train, split.test)
    )
    return tr.Split(train, test)


def by_user(ranks: tr.Ranks) -> dict[str, tuple[list[int], list[int], int]]:
    assert ranks.ids is not None
    return {
        name: (ranks[u].above.tolist(), ranks[u].tied.tolist(), int(ranks.n_candidates[u]))
        for u, name in enumerate(ranks.ids.tolist())
    }


@every
def test_names_travel_with_the_model(recommender: Any, tmp_path: Path) -> None:
    """A model learnt in one numbering, and stored, ranks a split in another numbering as its own."""
    plain = random_split()
    users, items = (np.array([f"{role} {n:03}" for n in range(size)]) for role, size in (("u", 300), ("i", 90)))
    train, test = (tr.Interactions(part.matrix, users, items) for part in (plain.train, plain.test))
    split = tr.Split(train, test)
    model = recommender.fit(split.train)
    expected = tr.rank(model, split)
    assert expected.above.tolist() == tr.rank(recommender.fit(plain.train), plain).above.tolist()
    model.save(tmp_path / "model.npz")
    for scorer in (model, tr.load_model(tmp_path / "model.npz")):
        np.testing.assert_array_equal(scorer.user_ids, users)
        np.testing.assert_array_equal(scorer.item_ids, items)
        assert by_user(tr.rank(scorer, shuffled(split, 1))) == by_user(expected)
        with pytest.raises(tr.InputError, match="the data have numbers, such as 0"):
            tr.rank(scorer, plain)


@pytest.mark.parametrize("change", [10**8, 50, -95])
def test_a_damaged_matrix_is_refused(change: int, tmp_path: Path) -> None:
    tr.ItemKNN(neighbours=2).fit(random_split().train).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = dict(file)
    for part in ("similarity_indices", "history_indices", "similarity_indptr"):
        np.savez(tmp_path / "edited.npz", **(arrays | {part: arrays[part] + change}))
        with pytest.raises(tr.InputError, match=f"is damaged: its {part.partition('_')[0]} is not a valid matrix"):
            tr.load_model(tmp_path / "edited.npz")
    np.savez(tmp_path / "edited.npz", **{name: array for name, array in arrays.items() if name != "history_data"})
    with pytest.raises(tr.InputError, match="is damaged: its history"):
        tr.load_model(tmp_path / "edited.npz")


@every
@pytest.mark.parametrize("train", [sp.csr_array((3, 4)), [[], []], sp.csr_array((0, 0))], ids=repr)
def test_refuses_empty_data(recommender: Any, train: Any) -> None:
    with pytest.raises(tr.InputError, match="`train` must hold at least one interaction"):
        recommender.fit(train)


@every
def test_unknown_users_and_items_score_zero_or_equal(recommender: Any) -> None:
    model = recommender.fit(random_split().train)
    scores = model.scores(np.arange(300))
    assert np.isfinite(scores).all()
    assert (scores[:, 5] == 0).all()
    if not isinstance(recommender, tr.Popularity):
        assert (scores[7] == 0).all()


@every
def test_ranks_are_those_of_the_scores(recommender: Any) -> None:
    split = random_split()
    model = recommender.fit(split.train)
    scores = model.scores(np.arange(model.n_users)).astype(np.float64)
    fast, slow = tr.rank(model, split), tr.rank(scores, split)
    # sums in another order may break or make ties of a few
    assert np.mean(fast.above == slow.above) > 0.98
    assert isinstance(model, (tr.Factors, tr.Similarity))


@every
def test_model_knows_its_users_and_items(recommender: Any) -> None:
    model = recommender.fit(random_split().train)
    assert (model.n_users, model.n_items) == (300, 90)
    with pytest.raises(tr.InputError, match="`test` must have 300 users"):
        tr.rank(model, test=sp.csr_array((4, 90)))


@every
def test_one_user_and_one_item(recommender: Any) -> None:
    assert recommender.fit([[0]]).scores(np.array([0])).shape == (1, 1)


def test_refuses_files_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(tr.InputError, match="there is no file"):
        tr.load_model(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(tr.InputError, match="can't read"):
        tr.load_model(tmp_path / "text.npz")
    np.save(tmp_path / "array.npy", np.ones(3))
    with pytest.raises(tr.InputError, match="can't read"):
        tr.load_model(tmp_path / "array.npy")
    np.savez(tmp_path / "other.npz", ranks=np.ones(3))
    with pytest.raises(tr.InputError, match="was not written"):
        tr.load_model(tmp_path / "other.npz")
    for about in ("[]", "{", '{"recommender": "EASE"}', '{"recommender": "EASE", "settings": {"speed": 1}}'):
        np.savez(tmp_path / "about.npz", about=np.array(about))
        with pytest.raises(tr.InputError, match="was not written"):
            tr.load_model(tmp_path / "about.npz")
    np.savez(tmp_path / "about.npz", about=np.array('{"recommender": "SVD", "settings": {}}'))
    with pytest.raises(tr.InputError, match="holds a model of 'SVD'; choose from EASE, IALS, ItemKNN, Popularity"):
        tr.load_model(tmp_path / "about.npz")
    with pytest.raises(tr.InputError, match=r"must end in \.npz"):
        tr.Popularity().fit([[0]]).save(tmp_path / "model.pickle")


def test_a_generator_is_not_saved(tmp_path: Path) -> None:
    tr.IALS(rng=np.random.default_rng(0)).fit([[0, 1]]).save(tmp_path / "model.npz")
    assert tr.load_model(tmp_path / "model.npz").recommender == tr.IALS(rng=None)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tr.IALS(factors=0), "`factors` must be a whole number from 1, got 0."),
        (lambda: tr.IALS(factors=2.5), "`factors` must be a whole number from 1, got 2.5."),  # type: ignore[arg-type]
        (lambda: tr.IALS(regularization=0.0), "`regularization` must be above 0.0, got 0.0."),
        (lambda: tr.IALS(alpha=-1.0), "`alpha` must be at least 0.0, got -1.0."),
        (lambda: tr.IALS(alpha=float("nan")), "`alpha` must be a finite number, got nan."),
        (lambda: tr.IALS(sweeps=0), "`sweeps` must be a whole number from 1, got 0."),
        (lambda: tr.ItemKNN(power=0.0), "`power` must be above 0.0, got 0.0."),
        (lambda: tr.ItemKNN(neighbours=0), "`neighbours` must be a whole number from 1, got 0."),
        (lambda: tr.ItemKNN(keep="both"), "`keep` must be 'column' or 'row', got 'both'."),  # type: ignore[arg-type]
        (lambda: tr.EASE(regularization=-1.0), "`regularization` must be above 0.0, got -1.0."),
        (lambda: tr.Popularity().fit([[0]], threads=0), "`threads` must be a whole number from 1, got 0."),
        (lambda: tr.Popularity().fit(3), "`train` must"),
    ],
)
def test_refuses_bad_settings(build: Any, message: str) -> None:
    with pytest.raises(tr.InputError) as error:
        build()
    assert message in str(error.value)
