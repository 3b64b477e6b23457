"""Exact ranks against loops over all candidates, for every kind of scorer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import truerank as tr
from tests import reference
from tests.arrays import AnyArray

N_USERS, N_ITEMS = 23, 41


def interactions(density: float, seed: int) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    return sp.csr_array((rng.random((N_USERS, N_ITEMS)) < density).astype(np.int8))


TRAIN, TEST = interactions(0.2, 1), interactions(0.1, 2)
RNG = np.random.default_rng(3)
# whole numbers, so that every order of additions gives the same scores, with many ties
USER_FACTORS = RNG.integers(-2, 3, size=(N_USERS, 3)).astype(np.float64)
ITEM_FACTORS = RNG.integers(-2, 3, size=(N_ITEMS, 3)).astype(np.float64)
BIAS = RNG.integers(-1, 2, size=N_ITEMS).astype(np.float64)
SCORES = USER_FACTORS @ ITEM_FACTORS.T
SIMILARITY = RNG.integers(0, 3, size=(N_ITEMS, N_ITEMS)).astype(np.float64) * (RNG.random((N_ITEMS, N_ITEMS)) < 0.2)


def slow_ranks(scores: AnyArray, allowed: AnyArray, test: AnyArray) -> tr.Ranks:
    """Count one candidate after the other."""
    parts = []
    for user in np.flatnonzero(test.any(axis=1)):
        chosen = np.flatnonzero(allowed[user] | test[user])
        above, tied = reference.count(scores[user, chosen].tolist(), test[user, chosen].tolist())
        parts.append(tr.Ranks(above=above, tied=tied, n_candidates=chosen.size, indptr=[0, len(above)], ids=[user]))
    return tr.Ranks.concatenate(parts)


def all_but_train(scores: AnyArray) -> tr.Ranks:
    return slow_ranks(scores, ~TRAIN.toarray().astype(bool), TEST.toarray().astype(bool))


def score_function(users: AnyArray) -> AnyArray:
    return SCORES[users]


class Model:
    """A model as other libraries have them."""

    user_factors = USER_FACTORS
    item_factors = ITEM_FACTORS


@pytest.mark.parametrize("number", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2])
def test_factors(number: Any, threads: int) -> None:
    scorer = tr.Factors(USER_FACTORS.astype(number), ITEM_FACTORS.astype(number))
    assert tr.rank(scorer, train=TRAIN, test=TEST, threads=threads) == all_but_train(SCORES)


def test_factors_with_bias() -> None:
    scorer = tr.Factors(USER_FACTORS, ITEM_FACTORS, item_bias=BIAS)
    assert tr.rank(scorer, train=TRAIN, test=TEST) == all_but_train(SCORES + BIAS)


def test_memory_mapped_factors(tmp_path: Path) -> None:
    np.save(tmp_path / "users.npy", USER_FACTORS.astype(np.float32))
    np.save(tmp_path / "items.npy", ITEM_FACTORS.astype(np.float32))
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("users", "items")]
    assert tr.rank(tr.Factors(*mapped), train=TRAIN, test=TEST) == all_but_train(SCORES)


@pytest.mark.parametrize(
    "scorer",
    [
        SCORES,
        SCORES.astype(np.float32),
        SCORES.astype(np.float16),
        SCORES.astype(np.int64),
        np.asfortranarray(SCORES),
        sp.csr_array(SCORES),
        sp.coo_matrix(SCORES),
        tr.ScoreMatrix(SCORES),
        score_function,
        Model(),
    ],
    ids=["float64", "float32", "float16", "int", "fortran", "csr", "coo", "ScoreMatrix", "function", "model"],
)
def test_scores_that_exist(scorer: Any) -> None:
    assert tr.rank(scorer, train=TRAIN, test=TEST) == all_but_train(SCORES)


@pytest.mark.parametrize("matrix", [SIMILARITY, sp.csr_array(SIMILARITY), SIMILARITY.astype(np.float32)])
def test_similarity(matrix: Any) -> None:
    expected = all_but_train(TRAIN.toarray() @ SIMILARITY)
    assert tr.rank(tr.Similarity(matrix, TRAIN), train=TRAIN, test=TEST) == expected


@pytest.mark.parametrize("form", [tr.Factors(USER_FACTORS, ITEM_FACTORS), SCORES, score_function])
def test_training_items_can_stay(form: Any) -> None:
    everything = np.ones((N_USERS, N_ITEMS), dtype=bool)
    expected = slow_ranks(SCORES, everything, TEST.toarray().astype(bool))
    assert tr.rank(form, train=TRAIN, test=TEST, keep_train=True) == expected
    assert tr.rank(form, test=TEST) == expected


@pytest.mark.parametrize(
    "form",
    [
        tr.Factors(USER_FACTORS, ITEM_FACTORS),
        SCORES,
        sp.csr_array(SCORES),
        score_function,
    ],
)
@pytest.mark.parametrize("as_lists", [True, False])
def test_explicit_candidates(form: Any, as_lists: bool) -> None:
    matrix = interactions(0.3, 4)
    candidates = [matrix[[user]].indices.tolist() for user in range(N_USERS)] if as_lists else matrix
    allowed = matrix.toarray().astype(bool)
    test = TEST.toarray().astype(bool)
    assert tr.rank(form, test=TEST, candidates=candidates) == slow_ranks(SCORES, allowed, test)
    less = allowed & ~TRAIN.toarray().astype(bool)
    assert tr.rank(form, train=TRAIN, test=TEST, candidates=candidates) == slow_ranks(SCORES, less, test)


def test_a_split() -> None:
    split = tr.Split(tr.Interactions.of(TRAIN, "train"), tr.Interactions.of(TEST, "test"))
    assert tr.rank(SCORES, split) == all_but_train(SCORES)
    with pytest.raises(tr.InputError, match="either a split, or `train` and `test`"):
        tr.rank(SCORES, split, test=TEST)


def test_lists_of_items() -> None:
    lists = [[matrix[[user]].indices.tolist() for user in range(N_USERS)] for matrix in (TRAIN, TEST)]
    for form in (SCORES, score_function, tr.Factors(USER_FACTORS, ITEM_FACTORS)):
        assert tr.rank(form, train=lists[0], test=lists[1]) == all_but_train(SCORES)


def test_names_of_users() -> None:
    names = np.array([f"user {user}" for user in range(N_USERS)])
    test = tr.Interactions(sp.csr_array(TEST), user_ids=names)
    ranks = tr.rank(SCORES, train=TRAIN, test=test)
    assert ranks.ids is not None
    assert ranks.ids.tolist() == names[np.diff(TEST.indptr) > 0].tolist()


def test_what_a_reader_should_know_is_noted() -> None:
    ranks = tr.rank(SCORES[:3, :4], train=[[0, 1], [2], []], test=[[1], [], [3]])
    assert ranks.notes == (
        "1 user has no held-out item and is left out",
        "1 held-out item is also a training item of its user and is ranked",
    )
    assert ranks.n_candidates.tolist() == [3, 4]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["scores", "factors", "function", "held-out"])
def test_scores_that_are_not_finite_are_named(bad: float, kind: str) -> None:
    user, item = 5, int(TEST[[5]].indices[0]) if kind == "held-out" else 40
    assert item not in TRAIN[[user]].indices
    scores, users = SCORES.copy(), USER_FACTORS.copy()
    scores[user, item] = bad
    users[user, 0] = bad
    forms: dict[str, Callable[[], Any]] = {
        "scores": lambda: scores,
        "held-out": lambda: scores,
        "function": lambda: lambda chosen: scores[chosen],
        "factors": lambda: tr.Factors(users, ITEM_FACTORS),
    }
    message = f"user {user}" if kind == "factors" else f"for user {user} and item {item}"
    with pytest.raises(tr.InputError, match=message):
        tr.rank(forms[kind](), train=TRAIN, test=TEST)


def test_training_items_may_have_any_score() -> None:
    masked = np.where(TRAIN.toarray() & ~TEST.toarray(), -np.inf, SCORES)
    assert tr.rank(masked, train=TRAIN, test=TEST) == all_but_train(SCORES)


def test_items_are_left_out_by_exclude_not_by_a_score() -> None:
    unwanted = next(item for item in range(N_ITEMS) if not TEST.toarray()[:, item].any())
    masked = SCORES.copy()
    masked[:, unwanted] = -np.inf
    with pytest.raises(tr.InputError, match="; leave items out with `train` or `exclude`, not by a score"):
        tr.rank(masked, test=TEST)
    left = tr.rank(masked, test=TEST, exclude=[unwanted])
    assert left.above.tolist() == tr.rank(SCORES, test=TEST, exclude=[unwanted]).above.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"test": None}, "give the held-out items as `test`, or a `split`"),
        ({"test": [[N_ITEMS]]}, r"`test` must hold items 0\.\.40, got 41\.\.41"),
        ({"test": sp.csr_array((N_USERS, 7))}, "`test` must have 41 items, got 7"),
        ({"test": sp.csr_array((7, N_ITEMS))}, "`test` must have 23 users, got 7"),
        ({"train": sp.csr_array((N_USERS, 7))}, "`train` must have 41 items, got 7"),
        ({"train": 5}, "`train` must be a sparse matrix or a list of item numbers per user, got int"),
        (
            {"train": "train.tsv"},
            "`train` must be a sparse matrix or a list of item numbers per user, got str; tr.read_split",
        ),
        ({"test": [np.zeros((9, 9))]}, r"per user, got an array of shape \(9, 9\) for user 0\.$"),
        ({"test": [{"item": "x" * 99}]}, r"`test` must be a list .* per user, got .{60} for user 0\.$"),
        ({"scorer": 5}, "can't get scores from int"),
        ({"scorer": lambda users: np.zeros((len(users), 3))}, r"must return .* of shape \(\d+, 41\), got"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    good = {"scorer": tr.Factors(USER_FACTORS, ITEM_FACTORS), "train": TRAIN, "test": TEST}
    with pytest.raises(tr.InputError, match=message):
        tr.rank(**(good | arguments))


def test_bad_factors() -> None:
    with pytest.raises(tr.InputError, match=r"the same number of columns, got shapes \(23, 3\) and \(41, 2\)"):
        tr.Factors(USER_FACTORS, ITEM_FACTORS[:, :2])
    with pytest.raises(tr.InputError, match="`item_bias` must have one number for each of 41 items"):
        tr.Factors(USER_FACTORS, ITEM_FACTORS, BIAS[:3])
    with pytest.raises(tr.InputError, match="must have the same users and items"):
        tr.Split(tr.Interactions.of(TRAIN, "train"), tr.Interactions.of([[1]], "test"))


def test_tensors() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for number in (torch.float32, torch.bfloat16):
        factors = [torch.tensor(array).to(number).requires_grad_() for array in (USER_FACTORS, ITEM_FACTORS)]
        assert tr.rank(tr.Factors(*factors), train=TRAIN, test=TEST) == all_but_train(SCORES)
    scores = torch.tensor(SCORES)
    assert tr.rank(scores, train=TRAIN, test=TEST) == all_but_train(SCORES)
    assert tr.rank(lambda users: scores[torch.as_tensor(users)], train=TRAIN, test=TEST) == all_but_train(SCORES)


MASKED = np.ma.masked_array([[0.9, 0.8, 0.7], [0.1, 0.2, 0.3]], mask=[[True, False, False], [False, False, False]])
LARGE = np.array([[2**53, 2**53 + 1, 0], [0, 1, 2]])


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (MASKED, "must not have masked entries, got 1"),
        (LARGE, r"must hold floats, or whole numbers up to 2\*\*53, got one of size 9007199254740993"),
        (-LARGE, r"must hold floats, or whole numbers up to 2\*\*53, got one of size 9007199254740993"),
        (LARGE.astype(np.uint64), r"must hold floats, or whole numbers up to 2\*\*53"),
    ],
)
def test_scores_that_would_change_silently_are_refused(scores: Any, message: str) -> None:
    """NumPy drops masks, and float64 makes a tie of 2**53 and 2**53 + 1."""
    test = [[1], [2]]
    pairs = tr.FunctionScorer(lambda users, items: scores[users, items], pairs=True, n_items=3)
    doors: list[Callable[[], object]] = [
        lambda: tr.rank(scores, test=test),
        lambda: tr.rank(lambda users: scores[users], test=test),
        lambda: tr.rank(pairs, test=test),
        lambda: tr.rank_sampled(pairs, test=test, design=2, rng=0),
        lambda: tr.RankCounter().update(scores, test),
        lambda: tr.recommend(scores, k=1),
        lambda: tr.rank(tr.Factors(scores, np.eye(3)), test=test),
        lambda: tr.rank(_Own(scores), test=test),
        lambda: tr.rank(_Own(scores), test=test, candidates=[[0], [0]]),
    ]
    for door in doors:
        with pytest.raises(tr.InputError, match=f"{message}|must return float32 or float64"):
            door()


class _Own(tr.Scorer):
    """A scorer of somebody else's, which returns what it likes."""

    def __init__(self, matrix: Any) -> None:
        self.matrix, (self.n_users, self.n_items) = matrix, matrix.shape

    def scores(self, users: Any) -> Any:
        return self.matrix[users]


def test_whole_numbers_and_empty_masks_are_exact() -> None:
    plain = np.array([[2**53, 2**53 - 1, 0], [0, 1, 2]])
    assert tr.rank(plain, test=[[1], [2]]).above.tolist() == [1, 0]
    assert tr.rank(np.ma.masked_array(plain), test=[[1], [2]]).above.tolist() == [1, 0]


@pytest.mark.parametrize(
    "door",
    [
        lambda masked: tr.Ranks.from_ranks(masked, n=9),
        lambda masked: tr.Ranks.from_ranks([1, 2], n=9, ids=masked),
        lambda masked: tr.Interactions.of([masked], "test"),
        lambda masked: tr.Interactions(sp.csr_array(np.eye(2)), user_ids=masked),
        lambda masked: tr.Interactions(sp.csr_array(np.eye(2)), times=masked),
        lambda masked: tr.RankCounter().update(np.eye(2), masked.reshape(1, 2).repeat(2, axis=0)),
    ],
)
def test_masks_are_refused(door: Callable[[Any], object]) -> None:
    with pytest.raises(tr.InputError, match="must not have masked entries"):
        door(np.ma.masked_array([1, 2], mask=[False, True]))
