"""Functions are asked for the users that are ranked, once each, and for the pairs that are needed."""

import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import truerank as tr
from tests.arrays import AnyArray, Ints
from truerank.kernels import scores
from truerank.ranking import among_samples

N_USERS, N_ITEMS = 60, 50
SCORES = np.random.default_rng(3).normal(size=(N_USERS, N_ITEMS))


class Recorded:
    """A function that remembers for which users it was called."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __call__(self, users: Ints) -> AnyArray:
        self.calls.append(users.tolist())
        return SCORES[users]

    @property
    def users(self) -> list[int]:
        return sorted(user for call in self.calls for user in call)


# users 0, 1, 2 have nothing held out, and nobody has the last items
LISTS = [[] if user < 3 else [user % 40, (user + 7) % 40] for user in range(N_USERS)]
SPARSE = tr.Interactions.of(LISTS, "test", n_items=N_ITEMS).matrix
ASKED = list(range(3, N_USERS))


def tellings() -> dict[str, Any]:
    return {
        "lists": lambda f: (f, LISTS),
        "sparse": lambda f: (f, SPARSE),
        "interactions": lambda f: (f, tr.Interactions(SPARSE)),
        "told": lambda f: (tr.FunctionScorer(f, n_items=N_ITEMS), LISTS),
        "told both": lambda f: (tr.FunctionScorer(f, n_items=N_ITEMS, n_users=N_USERS), LISTS),
    }


@pytest.mark.parametrize("tell", tellings().values(), ids=tellings())
@pytest.mark.parametrize("per_block", [512, 7])
def test_every_user_is_asked_for_once(tell: Any, per_block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "SCORES_PER_BLOCK", per_block * N_ITEMS)
    function = Recorded()
    scorer, test = tell(function)
    assert tr.rank(scorer, test=test, threads=1) == tr.rank(SCORES, test=LISTS)
    assert function.users == ASKED
    assert len(function.calls) <= -(-len(ASKED) // per_block) + 1
    function.calls.clear()
    candidates = sp.csr_array(np.ones((N_USERS, N_ITEMS)))
    assert tr.rank(scorer, test=test, candidates=candidates) == tr.rank(SCORES, test=LISTS)
    assert function.users == ASKED


def test_one_call_for_one_block() -> None:
    for test in (LISTS, SPARSE):
        function = Recorded()
        tr.rank(function, test=test)
        assert function.calls == [ASKED]


def test_one_call_for_a_sample() -> None:
    for test in (LISTS, SPARSE):
        function = Recorded()
        sampled = tr.rank_sampled(function, test=test, design=5, rng=0)
        assert sampled == tr.rank_sampled(SCORES, test=LISTS, design=5, rng=0)
        assert function.users == ASKED


def test_nothing_is_asked_if_nothing_is_held_out() -> None:
    function = Recorded()
    assert len(tr.rank(function, test=[[], []])) == 0
    assert not function.calls


def test_a_width_that_changes_is_refused() -> None:
    def grow(users: Ints) -> AnyArray:
        return np.zeros((users.size, 3 if 0 in users else 4))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores, "SCORES_PER_BLOCK", 6)
        with pytest.raises(tr.InputError, match=r"of shape \(2, 3\), got float64 of shape \(2, 4\)"):
            tr.rank(grow, test=[[2]] * 6, threads=1)


def score_pairs(users: Ints, items: Ints) -> AnyArray:
    return SCORES[users, items]


def test_pairs_alone_are_scored() -> None:
    asked: list[set[tuple[int, int]]] = []

    def score(users: Ints, items: Ints) -> AnyArray:
        asked.append(set(zip(users.tolist(), items.tolist(), strict=True)))
        return SCORES[users, items]

    ranks = tr.rank(score, test=SPARSE, candidates=[[0, 1]] * N_USERS)
    held = {(user, item) for user, items in enumerate(LISTS) for item in items}
    assert asked == [held | {(user, item) for user in ASKED for item in (0, 1)}]
    assert ranks == tr.rank(SCORES, test=SPARSE, candidates=[[0, 1]] * N_USERS)


def test_functions_of_pairs_can_be_ranked_over_all_items() -> None:
    assert tr.rank(score_pairs, test=SPARSE) == tr.rank(SCORES, test=SPARSE)
    assert tr.rank(tr.FunctionScorer(score_pairs, pairs=True, n_items=N_ITEMS), test=LISTS) == tr.rank(
        SCORES, test=SPARSE
    )


def test_functions_of_pairs_with_lists() -> None:
    expected = tr.rank_sampled(SCORES, test=LISTS, design=5, rng=0)
    assert (
        tr.rank_sampled(tr.FunctionScorer(score_pairs, pairs=True, n_items=N_ITEMS), test=LISTS, design=5, rng=0)
        == expected
    )
    train = sp.csr_array((N_USERS, N_ITEMS))
    assert tr.rank_sampled(score_pairs, train=train, test=LISTS, design=5, rng=0) == expected
    for rank in (tr.rank, tr.rank_sampled):
        with pytest.raises(tr.InputError, match=r"can't be inferred from a function of users and items; give"):
            rank(score_pairs, test=LISTS)


def test_one_score_per_pair() -> None:
    with pytest.raises(tr.InputError, match=r"one score per pair \(\d+\), got shape \(3,\)"):
        tr.rank(lambda users, items: np.zeros(3), test=SPARSE)


def test_batch_size_of_functions() -> None:
    scores = np.random.default_rng(0).normal(size=(9, 7))
    test = [[user % 7] for user in range(9)]
    users_at_once: list[int] = []
    pairs_at_once: list[int] = []

    def rows(users: Ints) -> AnyArray:
        users_at_once.append(users.size)
        return scores[users]

    def pairs(users: Ints, items: Ints) -> AnyArray:
        pairs_at_once.append(items.size)
        return scores[users, items]

    expected = tr.rank(scores, test=test)
    for n_items in (None, 7):
        assert tr.rank(tr.FunctionScorer(rows, batch_size=4, n_items=n_items), test=test, threads=2) == expected
    assert tr.rank(tr.FunctionScorer(pairs, pairs=True, n_items=7, batch_size=10), test=test) == expected
    assert max(users_at_once) == 4
    assert max(pairs_at_once) == 10
    with pytest.raises(tr.InputError, match="`batch_size` must be a whole number from 1, got 0"):
        tr.FunctionScorer(rows, batch_size=0)


class Called(tr.Scorer):
    """A scorer that remembers which threads called it."""

    n_users, n_items = N_USERS, N_ITEMS

    def __init__(self) -> None:
        self.callers: set[int] = set()

    def scores(self, users: Ints) -> AnyArray:
        self.callers.add(threading.get_ident())
        return SCORES[users]

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        self.callers.add(threading.get_ident())
        return SCORES[users, items]


@pytest.mark.parametrize("concurrent", [False, True])
def test_only_the_calling_thread_calls_scorers_unless_they_allow_more(
    concurrent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "SCORES_PER_BLOCK", 2 * N_ITEMS)
    monkeypatch.setattr(among_samples, "_PER_THREAD", 10)
    monkeypatch.setattr(among_samples, "_PAIRS", 50)
    calls: dict[str, Any] = {
        "rank": lambda scorer: tr.rank(scorer, test=LISTS, threads=4),
        "recommend": lambda scorer: tr.recommend(scorer, train=SPARSE, k=3, threads=4).items.tolist(),
        "sample": lambda scorer: tr.rank_sampled(scorer, test=LISTS, design=5, rng=0, threads=4),
        "rounds": lambda scorer: tr.rank_sampled(scorer, test=LISTS, design=tr.InverseSampling(), rng=0, threads=4),
    }
    for name, call in calls.items():
        scorer = Called()
        scorer.concurrent = concurrent
        assert call(scorer) == call(SCORES), name
        assert (scorer.callers == {threading.get_ident()}) is not concurrent, name
