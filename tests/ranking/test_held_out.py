"""What `rank` and `rank_sampled` accept, and how they refuse the rest."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import truerank as tr
from truerank.ranking.held_out import HeldOut

SCORES = np.arange(12.0).reshape(3, 4)
both = pytest.mark.parametrize("rank", [tr.rank, partial(tr.rank_sampled, design=1)])
Rank = Callable[..., Any]


@both
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give the held-out items as `test`, or a `split`"),
        ({"test": [0, 1]}, "`test` must be a list of item numbers per user, got 0 for user 0"),
        ({"test": [["a"]]}, "`test` must hold item numbers, got 'a' for user 0"),
        ({"test": [[1.5]]}, "`test` must hold item numbers, got 1.5 for user 0"),
        ({"test": [[0], [1], [2], [3]]}, "`test` must have 3 users, got 4"),
        ({"test": np.array([1, 2])}, "`test` must be a sparse matrix or a list of item numbers per user, got ndarray"),
        ({"test": [[1]], "train": [[0.5]]}, "`train` must hold item numbers, got 0.5 for user 0"),
        ({"test": [[1]], "train": sp.csr_array((3, 9))}, "`train` must have 4 items, got 9"),
    ],
)
def test_refused(rank: Rank, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        rank(SCORES, **options)


@both
def test_a_split_and_test_together_are_refused(rank: Rank) -> None:
    split = tr.Split(
        tr.Interactions.of([[0]] * 3, "train", n_items=4), tr.Interactions.of([[1]] * 3, "test", n_items=4)
    )
    with pytest.raises(tr.InputError, match="give either a split, or `train` and `test`, not both"):
        rank(SCORES, split, test=[[1]])
    with pytest.raises(tr.InputError, match="give either a split, or `train` and `test`, not both"):
        rank(SCORES, split, train=[[1]])


@both
def test_what_is_no_split(rank: Rank) -> None:
    with pytest.raises(tr.InputError, match="`split` must be a Split, got list; give held-out items as `test`"):
        rank(SCORES, [[1]])


@both
def test_names_of_train_and_test_must_agree(rank: Rank) -> None:
    train, test = (
        tr.Interactions(sp.csr_array(np.eye(3, 4, k)), item_ids=np.array(ids))
        for k, ids in ((0, ["a", "b", "c", "d"]), (1, ["a", "c", "b", "d"]))
    )
    with pytest.raises(tr.InputError, match="same items in the same order, got items 'b' and 'c' at position 1"):
        rank(SCORES, train=train, test=test)


def test_names_of_candidates_must_agree() -> None:
    test, candidates = (
        tr.Interactions(sp.csr_array(np.eye(3, 4, k)), user_ids=np.array(ids))
        for k, ids in ((0, ["a", "b", "c"]), (1, ["x", "b", "c"]))
    )
    with pytest.raises(tr.InputError, match="`candidates` and `test` must have the same users"):
        tr.rank(SCORES, test=test, candidates=candidates)


def test_names_may_come_from_train() -> None:
    train = tr.read_interactions({"ann": ["a", "b"], "bob": ["b", "c"]})
    model = tr.Popularity().fit(train)
    ranks = tr.rank(model, train=train, test=[[2], [0]])
    assert ranks.ids is not None
    assert ranks.ids.tolist() == ["ann", "bob"]


@pytest.mark.parametrize("candidates", [None, [[0, 1], [2]]])
def test_nothing_held_out(candidates: Any) -> None:
    ranks = tr.rank(SCORES, test=[[], []], candidates=candidates)
    assert len(ranks) == 0
    assert ranks.notes == ("3 users have no held-out item and are left out",)


def test_repeated_entries_are_one_relevant_item() -> None:
    twice = sp.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), shape=(1, 5))
    for test in (tr.Interactions(twice), twice, [[1, 1]]):
        ranks = tr.rank(np.arange(5.0)[None], test=test)
        assert (ranks.above.tolist(), ranks.n_candidates.tolist()) == ([3], [5])
    assert ranks.grades is None
    assert ranks.notes == ("1 item is repeated in a list of `test` and counts once",)


@pytest.mark.parametrize("threads", [0, -2, 1.5, True])
def test_threads(threads: Any) -> None:
    with pytest.raises(tr.InputError, match="`threads` must be"):
        tr.rank(SCORES, test=[[1]], threads=threads)


def test_held_out_training_items_are_noted_with_and_without_candidates() -> None:
    note = "1 held-out item is also a training item of its user and is ranked"
    for candidates in (None, [[0, 1, 2, 3]] * 3):
        ranks = tr.rank(SCORES, train=[[1, 2], [], []], test=[[1], [0], [0]], candidates=candidates)
        assert ranks.notes == (note,)
        assert ranks.n_candidates.tolist() == [3, 4, 4]


def test_scorers_given_together_have_the_same_items() -> None:
    with pytest.raises(tr.InputError, match=r"must have the items of `test` \(4\), got one with 3"):
        HeldOut.of([SCORES, SCORES[:, :3]], test=[[1]])
    with pytest.raises(tr.InputError, match="at least one scorer must be given"):
        HeldOut.of([], test=[[1]])
    functions = HeldOut.of([lambda users: SCORES[users], lambda users: SCORES[users]], test=[[1]])
    assert [scorer.n_items for scorer in functions.scorers] == [4, 4]


def test_items_that_only_the_scorer_knows_are_counted() -> None:
    items = np.array(["a", "b", "c", "d", "e"])
    named = tr.Factors(np.ones((2, 1)), np.arange(5.0)[:, None], user_ids=np.array(["ann", "bob"]), item_ids=items)
    judged = tr.read_interactions({"ann": ["a"], "bob": ["c"]})
    note = "3 items of the scorer are not in the data and are not candidates"
    exact = tr.rank(named, test=judged)
    assert (exact.n_candidates.tolist(), exact.notes) == ([2, 2], (note,))
    assert note in str(tr.evaluate(exact, "rr"))
    wider = tr.read_interactions({"ann": ["a"], "bob": ["c", "d", "e"]})
    assert tr.rank(named, test=wider).notes == ("1 item of the scorer is not in the data and is not a candidate",)
    everything = tr.read_interactions({"ann": ["a"], "bob": ["b", "c", "d", "e"]})
    assert tr.rank(named, test=everything).notes == ()
    assert tr.rank(named, test=judged, candidates=judged).notes == ()


def test_items_that_only_one_scorer_knows_are_noted_for_it() -> None:
    own = {"small": np.array(["a", "b", "c"]), "large": np.array(["a", "b", "c", "d", "e"])}
    scorers = {name: tr.Factors(np.ones((2, 1)), np.ones((len(ids), 1)), item_ids=ids) for name, ids in own.items()}
    test = tr.Interactions(sp.csr_array(np.eye(2, 3)), item_ids=own["small"])
    sampled = tr.rank_sampled(scorers, test=test, design=1, rng=1)
    assert sampled["small"].notes == ()
    assert sampled["large"].notes == ("2 items of the scorer are not in the data and are not candidates",)


def test_several_models_rank_the_same_drawn_users() -> None:
    scores, test = np.random.default_rng(0).normal(size=(40, 30)), [[user % 30] for user in range(40)]
    models = {"a": scores, "b": -scores}
    for rank in (tr.rank, partial(tr.rank_sampled, design=5)):
        found: Any = rank(models, test=test, users=10, rng=1)
        assert list(found) == ["a", "b"]
        assert found["a"].ids.tolist() == found["b"].ids.tolist()
        assert found["a"].notes == ("10 of 40 users were ranked, drawn at random",)
        assert len(rank(scores, test=test, users=[3, 5])) == 2
    exact = tr.rank(models, test=test)
    assert exact == {name: tr.rank(own, test=test) for name, own in models.items()}


@pytest.mark.parametrize("keep_train", [False, True])
@pytest.mark.parametrize(
    "design",
    ["uniform(4)", "uniform(4, replace)", "popularity(3)", "inverse(2)", tr.HeadFirst(k=2), "head-first@2"],
    ids=str,
)
def test_samples_are_drawn_from_the_given_candidates(design: Any, keep_train: bool) -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(30, 60))
    asked: list[tuple[int, int]] = []
    listed = [np.sort(rng.choice(60, 20, replace=False)).tolist() for _ in range(30)]
    train = [rng.choice(60, 15, replace=False).tolist() for _ in range(30)]
    test = [[user, user + 30] for user in range(30)]

    def score(users: Any, items: Any) -> Any:
        asked.extend(zip(users.tolist(), items.tolist(), strict=True))
        return scores[users, items]

    given: dict[str, Any] = {"train": train, "test": test, "candidates": listed, "keep_train": keep_train}
    sampled = tr.rank_sampled(tr.FunctionScorer(score, pairs=True, n_items=60), **given, design=design, rng=2)
    exact = tr.rank(scores, **given)
    assert sampled.n_catalogue.tolist() == exact.n_candidates.tolist()
    for user, item in asked:
        left_out = [] if keep_train else train[user]
        assert item in test[user] or (item in listed[user] and item not in left_out)
    if sampled.depth is not None:
        assert tr.values(sampled, "ndcg@2").tolist() == tr.values(exact, "ndcg@2").tolist()


def test_all_listed_candidates_drawn_are_all_ranked() -> None:
    scores, listed = np.random.default_rng(2).normal(size=(5, 40)), [list(range(user, user + 9)) for user in range(5)]
    test = [[39]] * 5
    sampled = tr.rank_sampled(scores, test=test, candidates=listed, design=9, rng=0)
    assert sampled.rank.tolist() == tr.rank(scores, test=test, candidates=listed).rank.tolist()
