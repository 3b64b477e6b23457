"""Candidates by name or number, for everybody, each user or a time; what is excluded; what a model does not know."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truerank as tr

RNG = np.random.default_rng(0)
N_USERS, N_ITEMS = 30, 25
USERS, ITEMS = np.array([f"u{at:02}" for at in range(N_USERS)]), np.array([f"i{at:02}" for at in range(N_ITEMS)])
SCORES = RNG.integers(0, 9, (N_USERS, N_ITEMS)).astype(float)
EVENTS = [
    (user, item, int(time))
    for user in range(N_USERS)
    for item, time in zip(RNG.permutation(N_ITEMS)[:7], np.sort(RNG.integers(0, 100, 7)), strict=True)
]
DATA = tr.read_interactions(
    {
        "user": [USERS[user] for user, _, _ in EVENTS] + ["u00"] * N_ITEMS,
        "item": [ITEMS[item] for _, item, _ in EVENTS] + ITEMS.tolist(),
        "time": [time for *_, time in EVENTS] + [0] * N_ITEMS,
    }
)
SPLIT = tr.leave_last_out(DATA, 2)
STOCK = ITEMS[::3]
LISTS = {user: RNG.permutation(ITEMS)[:9].tolist() for user in USERS}

FORMS: dict[str, Callable[[], Any]] = {
    "matrix": lambda: tr.ScoreMatrix(SCORES, user_ids=USERS, item_ids=ITEMS),
    "factors": lambda: tr.Factors(SCORES, np.eye(N_ITEMS), user_ids=USERS, item_ids=ITEMS),
    "rows": lambda: tr.FunctionScorer(lambda users: SCORES[users], user_ids=USERS, item_ids=ITEMS),
    "pairs": lambda: tr.FunctionScorer(
        lambda users, items: SCORES[users, items], pairs=True, user_ids=USERS, item_ids=ITEMS
    ),
}
forms = pytest.mark.parametrize("form", FORMS)


def slow(candidates: Callable[[str], Any], scores: Any = None) -> dict[str, tuple[list[int], list[int], int]]:
    """Return above, tied and number of candidates of each user, item by item, for scores as a dict of dicts."""
    scores = scores or {user: dict(zip(ITEMS, row, strict=True)) for user, row in zip(USERS, SCORES, strict=True)}
    found = {}
    for row, user in enumerate(SPLIT.test.names.tolist()):
        held = set(SPLIT.test.item_names[SPLIT.test.of_user(row)].tolist())
        if not held:
            continue
        seen = set(SPLIT.train.item_names[SPLIT.train.of_user(row)].tolist())
        others = set(np.asarray(candidates(user)).tolist()) - held - seen
        own, order = scores[user], sorted(held, key=lambda item: -scores[user][item])
        found[user] = (
            [sum(own[other] > own[item] for other in others) for item in order],
            [sum(own[other] == own[item] for other in others) for item in order],
            len(others) + len(held),
        )
    return found


def as_dict(ranks: tr.Ranks) -> dict[str, tuple[list[int], list[int], int]]:
    assert ranks.ids is not None
    return {
        ranks.ids[at].item(): (one.above.tolist(), one.tied.tolist(), int(one.n_candidates[0]))
        for at, one in ((at, ranks[at]) for at in range(len(ranks)))
    }


@forms
@pytest.mark.parametrize("listed", [STOCK, STOCK.tolist(), STOCK[:2], STOCK[::-1]])
def test_one_list_for_all(form: str, listed: Any) -> None:
    ranks = tr.rank(FORMS[form](), SPLIT, candidates=listed)
    assert as_dict(ranks) == slow(lambda _: listed)
    outside = int((~np.isin(SPLIT.test.item_names[SPLIT.test.items], listed)).sum())
    assert f"{outside} held-out items are not candidates of their user and are ranked" in ranks.notes
    assert ranks.items is not None
    assert set(ranks.items.tolist()) <= set(ITEMS.tolist())


@forms
def test_lists_by_user_name(form: str) -> None:
    expected = slow(lambda user: LISTS[user])
    assert as_dict(tr.rank(FORMS[form](), SPLIT, candidates=LISTS)) == expected
    rows = {
        "user": [user for user in LISTS for _ in LISTS[user]],
        "item": [item for own in LISTS.values() for item in own],
    }
    assert as_dict(tr.rank(FORMS[form](), SPLIT, candidates=rows)) == expected
    numbers = [np.searchsorted(ITEMS, LISTS[user]) for user in USERS]
    assert as_dict(tr.rank(FORMS[form](), SPLIT, candidates=numbers)) == expected


@forms
@pytest.mark.parametrize("candidates", [None, STOCK, LISTS])
def test_what_is_excluded(form: str, candidates: Any) -> None:
    banned, own = ITEMS[3:9], {user: LISTS[user][:4] for user in USERS[::2]}

    def listed(given: Any, user: str) -> set[str]:
        return set(given.get(user, ()) if isinstance(given, dict) else given)

    for excluded in (banned, own):
        ranks = tr.rank(FORMS[form](), SPLIT, candidates=candidates, exclude=excluded)
        allowed = ITEMS if candidates is None else candidates
        expected = {user: sorted(listed(allowed, user) - listed(excluded, user)) for user in USERS}
        assert as_dict(ranks) == slow(expected.__getitem__)


def test_unnamed_data_are_numbered() -> None:
    ranks = tr.rank(SCORES, test=[[0], [1, 2]], candidates=[3, 4, 5], exclude={1: [4]})
    others = [[3, 4, 5], [3, 5]]
    for at, held in enumerate(([0], [1, 2])):
        above = sorted(sum(SCORES[at, other] > SCORES[at, item] for other in others[at]) for item in held)
        assert ranks[at].above.tolist() == above
    assert ranks.items is not None
    assert sorted(ranks.items.tolist()) == [0, 1, 2]


def test_in_stock_when_the_user_came() -> None:
    since, until = RNG.integers(0, 90, N_ITEMS), RNG.integers(30, 110, N_ITEMS)
    stock = tr.read_candidates({"item": ITEMS, "since": since, "until": until})
    assert SPLIT.test.times is not None
    first = {
        user: SPLIT.test.times[SPLIT.test.indptr[row] : SPLIT.test.indptr[row + 1]].min(initial=10**6)
        for row, user in enumerate(SPLIT.test.names.tolist())
    }

    def there(user: str) -> Any:
        return ITEMS[(since <= first[user]) & (first[user] < until)]

    assert as_dict(tr.rank(FORMS["matrix"](), SPLIT, candidates=stock)) == slow(there)
    without = tr.rank(FORMS["matrix"](), SPLIT, exclude=stock)
    assert as_dict(without) == slow(lambda user: np.setdiff1d(ITEMS, there(user)))
    assert stock.at(50).items.tolist() == ITEMS[(since <= 50) & (until > 50)].tolist()


def test_dates_and_numbers_of_times_do_not_mix() -> None:
    stock = tr.read_candidates({"item": ITEMS, "since": ["2024-01-01"] * N_ITEMS})
    with pytest.raises(tr.InputError, match="are dates, but those of the held-out events are numbers"):
        tr.rank(FORMS["matrix"](), SPLIT, candidates=stock)
    with pytest.raises(tr.InputError, match="no times of held-out events; give the candidates of one time"):
        tr.rank(SCORES, test=[[1]], candidates=tr.read_candidates({"item": [1, 2], "until": [5, 6]}))
    with pytest.raises(tr.InputError, match=r"`time` must be a time like those of the candidates \(2024"):
        stock.at("soon")


@pytest.mark.parametrize("design", ["uniform(3)", "uniform(3, replace)", "inverse(2)", "popularity(3)"])
def test_samples_are_drawn_from_the_candidates(design: str) -> None:
    asked: list[tuple[int, int]] = []

    def score(users: Any, items: Any) -> Any:
        asked.extend(zip(users.tolist(), items.tolist(), strict=True))
        return SCORES[users, items]

    scorer = tr.FunctionScorer(score, pairs=True, user_ids=USERS, item_ids=ITEMS)
    ranks = tr.rank_sampled(scorer, SPLIT, design=design, candidates=STOCK, exclude=STOCK[:2], rng=0)
    expected = slow(lambda _: STOCK[2:])
    assert ranks.ids is not None
    assert dict(zip(ranks.ids.tolist(), ranks.n_catalogue.tolist(), strict=True)) == {
        user: n for user, (_, _, n) in expected.items()
    }
    held = set(zip(SPLIT.test.users.tolist(), SPLIT.test.items.tolist(), strict=True))
    assert {ITEMS[item] for user, item in asked if (user, item) not in held} <= set(STOCK[2:].tolist())


def test_a_function_of_pairs_is_asked_for_candidates_only() -> None:
    asked: list[Any] = []

    def score(users: Any, items: Any) -> Any:
        asked.extend(items.tolist())
        return SCORES[users, items]

    scorer = tr.FunctionScorer(score, pairs=True, user_ids=USERS, item_ids=ITEMS)
    tr.rank(scorer, SPLIT, candidates=STOCK)
    assert set(ITEMS[asked]) <= set(STOCK) | set(SPLIT.test.item_names[SPLIT.test.items])


def test_a_store_serves_every_choice_of_candidates(tmp_path: Path) -> None:
    for candidates in (STOCK, None, STOCK[1:], LISTS):
        stored = tr.rank(FORMS["pairs"](), SPLIT, candidates=candidates, store=tmp_path / "scores.db")
        assert stored == tr.rank(FORMS["matrix"](), SPLIT, candidates=candidates)


KNOWN_USERS, KNOWN_ITEMS = USERS[4:], ITEMS[:18]


def smaller(form: str) -> Any:
    """Return a scorer that knows only some users and items, in another order."""
    scores = SCORES[4:, :18][::-1, ::-1]
    ids: Any = {"user_ids": KNOWN_USERS[::-1], "item_ids": KNOWN_ITEMS[::-1]}
    kinds: dict[str, Any] = {
        "matrix": tr.ScoreMatrix(scores, **ids),
        "factors": tr.Factors(scores, np.eye(18), **ids),
        "rows": tr.FunctionScorer(lambda users: scores[users], **ids),
        "pairs": tr.FunctionScorer(lambda users, items: scores[users, items], pairs=True, **ids),
    }
    return kinds[form]


def lowered() -> dict[str, dict[str, float]]:
    """Return all scores, those of unknown pairs below the others and of held-out ones last."""
    low = np.where(np.isin(USERS, KNOWN_USERS)[:, None] & np.isin(ITEMS, KNOWN_ITEMS), SCORES, -1.0)
    for row, user in enumerate(SPLIT.test.names.tolist()):
        for item in SPLIT.test.of_user(row):
            at = int(np.flatnonzero(user == USERS)[0])
            low[at, item] = -2.0 if low[at, item] == -1 else low[at, item]
    return {user: dict(zip(ITEMS, row, strict=True)) for user, row in zip(USERS, low, strict=True)}


@forms
@pytest.mark.parametrize("candidates", [None, STOCK, LISTS])
def test_unknown_ones_last(form: str, candidates: Any, tmp_path: Path) -> None:
    allowed = ITEMS if candidates is None else candidates
    expected = slow(lambda user: allowed[user] if isinstance(allowed, dict) else allowed, lowered())
    ranks = tr.rank(smaller(form), SPLIT, candidates=candidates, unknown="last")
    assert as_dict(ranks) == expected
    stored = tr.rank(smaller(form), SPLIT, candidates=candidates, unknown="last", store=tmp_path / "scores.db")
    assert as_dict(stored) == expected
    users = np.isin(ranks.ids, KNOWN_USERS, invert=True).sum()
    last = "users are not known to the scorer and have all held-out items last (unknown='last')"
    assert f"{users} {last}" in ranks.notes
    if candidates is None:  # everybody has 18 irrelevant candidates, and all of them are drawn
        all_of_them = tr.rank_sampled(smaller(form), SPLIT, unknown="last", design=18, rng=0)
        assert as_dict(all_of_them) == expected


def test_unknown_ones_last_in_rounds() -> None:
    """With enough hits, inverse sampling looks at everything."""
    ranks = tr.rank_sampled(smaller("pairs"), SPLIT, unknown="last", design="inverse(99)", rng=0)
    exact = tr.rank(smaller("matrix"), SPLIT, unknown="last")
    assert ranks.above.tolist() >= exact.above.tolist()
    unknown = np.isin(exact.ids, KNOWN_USERS, invert=True)
    for one in (ranks, exact):
        assert (one[unknown].above == one[unknown].item_irrelevant).all()


@forms
def test_unknown_ones_dropped(form: str) -> None:
    ranks = tr.rank(smaller(form), SPLIT, unknown="drop")
    known = SPLIT.test.select(
        np.isin(SPLIT.test.names[SPLIT.test.users], KNOWN_USERS)
        & np.isin(SPLIT.test.item_names[SPLIT.test.items], KNOWN_ITEMS)
    )
    fair = tr.rank(FORMS[form](), train=SPLIT.train, test=known, candidates=KNOWN_ITEMS)
    assert as_dict(ranks) == as_dict(fair)
    n_users = int(np.isin(SPLIT.test.names[np.diff(SPLIT.test.indptr) > 0], KNOWN_USERS, invert=True).sum())
    assert f"{n_users} users are not known to every scorer and are dropped (unknown='drop')" in ranks.notes
    assert any(note.startswith("7 items are not known to every scorer") for note in ranks.notes)


def test_scorers_together_drop_what_any_does_not_know() -> None:
    both = tr.rank({"all": FORMS["matrix"](), "some": smaller("matrix")}, SPLIT, unknown="drop")
    assert both["all"].ids is not None
    assert both["some"].ids is not None
    assert both["all"].ids.tolist() == both["some"].ids.tolist()
    assert both["all"] == both["some"]


def test_candidates_that_are_not_in_the_data() -> None:
    ids = np.append(ITEMS, "new")
    model = tr.ScoreMatrix(np.column_stack([SCORES, np.full(N_USERS, 99.0)]), user_ids=USERS, item_ids=ids)
    stock = [*STOCK.tolist(), "new"]
    wider = {user: {**dict(zip(ITEMS, row, strict=True)), "new": 99.0} for user, row in zip(USERS, SCORES, strict=True)}
    assert as_dict(tr.rank(model, SPLIT, candidates=stock)) == slow(lambda _: stock, wider)
    with pytest.raises(tr.InputError, match="the scorer does not know item 'new'"):
        tr.rank(SCORES, SPLIT, candidates=stock)
    assert as_dict(tr.rank(SCORES, SPLIT, candidates=stock, unknown="drop")) == slow(lambda _: STOCK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": ["a", "b"]}, "no item of `candidates` is in the data: the ids do not match"),
        ({"exclude": ["a", "b"]}, "no item of `exclude` is in the data: the ids do not match"),
        ({"candidates": {"nobody": ["i01"]}}, "no user of `candidates` is in the data"),
        ({"candidates": {"u01": ["i01"]}}, r"users with held-out items have no candidates \(first 'u02'\)"),
        ({"candidates": "nowhere.csv"}, "there is no file 'nowhere.csv'"),
        ({"candidates": [[1], "x"]}, "`candidates` must be a list of item numbers per user"),
        ({"unknown": "first"}, "`unknown` must be one of 'refuse', 'last', 'drop', got 'first'"),
    ],
)  # fmt: skip
def test_refused(options: dict[str, Any], message: str) -> None:
    for call in (tr.rank, tr.rank_sampled):
        with pytest.raises(tr.InputError, match=message):
            call(FORMS["matrix"](), SPLIT, **options)


def test_unnamed_items_out_of_range() -> None:
    with pytest.raises(tr.InputError, match=r"`candidates` must hold items 0..24, got 99"):
        tr.rank(SCORES, test=[[1]], candidates=[3, 99])


@pytest.mark.parametrize("keep_train", [False, True])
@pytest.mark.parametrize("listed", [STOCK, LISTS, {user: LISTS[user] for user in USERS[3:]}])
def test_recommended_from_candidates(listed: Any, keep_train: bool) -> None:
    lists = tr.recommend(FORMS["factors"](), SPLIT, k=3, candidates=listed, exclude=STOCK[1:2], keep_train=keep_train)
    for row, user in enumerate(SPLIT.train.names.tolist()):
        own = set(listed.get(user, ()) if isinstance(listed, dict) else listed) - {STOCK[1]}
        seen = set() if keep_train else set(SPLIT.train.item_names[SPLIT.train.of_user(row)])
        scores = dict(zip(ITEMS, SCORES[row], strict=True))
        assert lists.of_user(user).tolist() == sorted(own - seen, key=lambda item: (-scores[item], item))[:3]


def test_recommended_without_unknown_items() -> None:
    with pytest.raises(tr.InputError, match="the scorer does not know item 'i18'"):
        tr.recommend(smaller("matrix"), SPLIT)
    last, dropped = (
        tr.recommend(smaller("factors"), SPLIT, k=N_ITEMS, keep_train=True, unknown=how) for how in ("last", "drop")
    )
    user = KNOWN_USERS[0]
    assert set(dropped.of_user(user)) == set(KNOWN_ITEMS)
    assert last.of_user(user)[:18].tolist() == dropped.of_user(user).tolist()
    assert set(last.of_user(user)[18:]) == set(ITEMS[18:])
    with pytest.raises(tr.InputError, match=r"give the candidates of one time, as in `candidates\.at"):
        tr.recommend(FORMS["matrix"](), SPLIT, candidates={"item": ITEMS, "since": range(N_ITEMS)})


@pytest.mark.parametrize("depth", [None, 7])
@pytest.mark.parametrize("kind", ["factors", "matrix", "function", "graded"])
def test_unknown_items_and_users_are_placed_after_what_was_counted(kind: str, depth: int | None) -> None:
    rng = np.random.default_rng(5)
    users, items = rng.integers(-2, 3, size=(12, 4)).astype(float), rng.integers(-2, 3, size=(25, 4)).astype(float)
    known_users, known_items = rng.random(12) < 0.8, rng.random(25) < 0.7
    rows = [rng.choice(25, 9, replace=False) for _ in range(12)]
    train = tr.Interactions.of([own[:6].tolist() for own in rows], "train", n_items=25)
    held = tr.Interactions.of([own[4:].tolist() for own in rows], "test", n_items=25)
    if kind == "graded":
        held.matrix.data[:] = rng.integers(1, 4, held.items.size)
    scores = users @ items.T
    low = np.where(held.matrix.toarray() > 0, -2e38, -1e38)
    expected = tr.rank(np.where(np.outer(known_users, known_items), scores, low), train=train, test=held, depth=depth)
    names: Any = {"user_ids": np.flatnonzero(known_users)[::-1], "item_ids": np.flatnonzero(known_items)[::-1]}
    own = users[names["user_ids"]], items[names["item_ids"]]
    scorer: Any = {
        "matrix": tr.ScoreMatrix(own[0] @ own[1].T, **names),
        "function": tr.FunctionScorer(lambda a, b: (own[0][a] * own[1][b]).sum(1), pairs=True, **names),
    }.get(kind, tr.Factors(*own, **names))
    found = tr.rank(scorer, train=train, test=held, unknown="last", depth=depth)
    for name in ("above", "tied", "n_candidates", "indptr", "items", "ids", "grades", "same_score"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_a_scorer_that_knows_nothing() -> None:
    factors = tr.Factors(np.ones((2, 1)), np.ones((2, 1)), user_ids=["x", "y"], item_ids=["p", "q"])
    test = tr.read_interactions({"user": ["ann", "bob", "bob"], "item": ["a", "b", "c"]})
    ranks = tr.rank(factors, test=test, unknown="last")
    assert ranks.above.tolist() == [2, 1, 1]
