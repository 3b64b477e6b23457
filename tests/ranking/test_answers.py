"""Answers that order given candidates, with invented, repeated and missing items; sessions within users."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import truerank as tr

RNG = np.random.default_rng(0)
ITEMS = [f"i{at}" for at in range(12)]


def messy(rng: np.random.Generator, candidates: list[str]) -> list[str]:
    """Return an answer that lacks some candidates, repeats some, and invents others."""
    listed = rng.permutation(candidates)[: rng.integers(1, len(candidates) + 1)].tolist()
    for _ in range(rng.integers(0, 3)):
        listed.insert(int(rng.integers(0, len(listed) + 1)), str(rng.choice(candidates)))
        listed.insert(int(rng.integers(0, len(listed) + 1)), f"x{rng.integers(9)}")
    return listed


def slow_rank(answer: list[str], candidates: list[str], item: str, invalid: str) -> tuple[int, int]:
    """Return rank of the one relevant item and number of candidates, by definition."""
    places: list[str | None] = []
    for listed in answer:
        if listed in candidates and listed not in places:
            places.append(listed)
        elif invalid == "count":
            places.append(None)
    odd = sum(place is None for place in places)
    rest = [each for each in candidates if each not in places]
    order = [*places, *(each for each in rest if each != item), *(each for each in rest if each == item)]
    return order.index(item) + 1, len(candidates) + odd


@pytest.mark.parametrize("invalid", ["last", "count"])
def test_messy_answers(invalid: Any) -> None:
    shown = {f"u{user}": RNG.permutation(ITEMS)[:6].tolist() for user in range(200)}
    truth = {user: [str(RNG.choice(items))] for user, items in shown.items()}
    answers = {user: messy(RNG, items) for user, items in shown.items()}
    ranks = tr.read_lists(answers, truth, candidates=shown, invalid=invalid)
    expected = [slow_rank(answers[user], shown[user], truth[user][0], invalid) for user in shown]
    assert list(zip(ranks.rank.tolist(), ranks.n_candidates.tolist(), strict=True)) == expected
    assert ranks.ids is not None
    assert ranks.ids.tolist() == list(shown)
    invented = sum(item not in shown[user] for user in shown for item in answers[user])
    repeated = sum(
        item in shown[user] and item in answers[user][:at] for user in shown for at, item in enumerate(answers[user])
    )
    missing = [len(set(shown[user]) - set(answers[user])) for user in shown]
    fate = {"last": "are ignored", "count": "count as irrelevant items"}[invalid]
    short = f"{sum(missing)} candidates are missing from {np.count_nonzero(missing)} of 200 lists and come last"
    assert ranks.notes == (
        f"{invented} listed items are not candidates (invented): such items {fate}",
        f"{repeated} listed items are repeated: such items {fate}",
        f"{short}, relevant ones last of all",
    )


def test_several_relevant_items_with_grades_and_scores() -> None:
    run = pd.DataFrame({"user": "u", "item": list("abcz"), "score": [2.0, 3.0, 2.0, 9.0]})
    truth = pd.DataFrame({"user": "u", "item": list("acdn"), "relevance": [1, 2, 3, 0]})
    ranks = tr.read_lists(run, truth, candidates=list("abcde"), invalid="last")
    assert (ranks.above.tolist(), ranks.tied.tolist()) == ([1, 1, 2], [0, 0, 0])
    assert ranks.grades is not None
    assert (sorted(ranks.grades[:2].tolist()), ranks.grades[2]) == ([1.0, 2.0], 3.0)
    assert ranks.n_candidates.tolist() == [5]


def test_relevant_items_that_were_not_shown_are_added() -> None:
    ranks = tr.read_lists({1: [7, 8]}, {1: [9], 2: [7]}, candidates={1: [7, 8], 2: [7, 8]}, invalid="last")
    assert (ranks.rank.tolist(), ranks.n_candidates.tolist()) == ([3, 2], [3, 2])
    assert "1 relevant item was not among the candidates and is added" in ranks.notes
    assert "1 user has no list: the relevant items come last" in ranks.notes


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (["a", "z", "b"], "item 'z' of user 'u' is not among the candidates; allow such items with invalid="),
        (["a", "a", "b"], "item 'a' of user 'u' is in the list more than once; allow"),
        (["a"], "candidate 'b' of user 'u' is not in the list; allow missing items with invalid="),
    ],
)
def test_refused_by_default(answer: list[str], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.read_lists({"u": answer}, {"u": ["a"]}, candidates={"u": ["a", "b"]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": ["a"], "depth": 3}, "give either `candidates`"),
        ({"n": 30}, "`n` is the size of the catalogue that `candidates` are sampled from; give them, too"),
        ({"candidates": [[1, 2]]}, "`candidates` must be given by name"),
        ({"candidates": {"v": ["a"]}}, r"1 user of the truth has no candidates \(first 'u'\)"),
        ({"candidates": ["a"], "n": 30, "invalid": "count"}, "other items can't count; use invalid='last'"),
        ({"candidates": {"item": ["a"], "since": [3]}}, "`candidates` must be given by name"),
        ({"session": "order"}, "there is no column 'order' for the session"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.read_lists({"u": ["a"]}, {"u": ["a"]}, **options)


def test_repeats_take_no_place() -> None:
    run, truth = {"q": ["a", "a", "b", "x", "b", "c"], "r": ["c", "c", "c", "d", "a"]}, {"q": ["b", "c"], "r": ["a"]}
    ranks = tr.read_lists(run, truth, invalid="last")
    assert ranks.rank.tolist() == [2, 4, 3]
    assert ranks.notes[0] == "4 listed items are repeated: such items are ignored"
    scored = pd.DataFrame({"user": "q", "item": list("abab"), "score": [1.0, 2.0, 9.0, 0.5]})
    assert tr.read_lists(scored, {"q": ["b"]}, invalid="last").rank.tolist() == [2]


def test_candidates_that_are_a_sample_of_the_catalogue() -> None:
    shown = {user: RNG.permutation(ITEMS)[:6].tolist() for user in range(300)}
    truth = {user: items[:1] for user, items in shown.items()}
    answers = {user: RNG.permutation(items).tolist() for user, items in shown.items()}
    ranks = tr.read_lists(answers, truth, candidates=shown, n=1_000)
    assert ranks == tr.Ranks.from_sampled(
        [answers[user].index(truth[user][0]) + 1 for user in shown], m=5, n=1_000, ids=list(shown)
    )
    assert any(
        "5 of 999 candidates are too few for any correction" in note for note in tr.evaluate(ranks, "ndcg@10").notes
    )


def sessions() -> tuple[pd.DataFrame, dict[str, list[str]], pd.DataFrame]:
    """Return answers in several orders per user, the truth, and what was shown."""
    rows, shown = [], []
    for user in range(40):
        own = RNG.permutation(ITEMS)[:5]
        for order in RNG.permutation(3):
            answer = sorted(own, key=lambda item: RNG.random() + ITEMS.index(item) % 5)
            rows += [(f"u{user}", int(order), item) for item in answer]
            shown += [(f"u{user}", int(order), item) for item in RNG.permutation(own)]
    columns = ["user", "order", "item"]
    run, listed = pd.DataFrame(rows, columns=columns), pd.DataFrame(shown, columns=columns)
    truth = {f"u{user}": [run[run.user == f"u{user}"].item.iloc[int(RNG.integers(5))]] for user in range(40)}
    return run, truth, listed


def test_each_session_is_an_instance_of_its_user() -> None:
    run, truth, listed = sessions()
    expected = {
        (user, order): rows.item.tolist().index(truth[user][0]) + 1
        for (user, order), rows in list[Any](run.groupby(["user", "order"]))
    }
    shown = tr.read_candidates(listed, session="order")
    each: list[dict[str, Any]] = [{"depth": "all"}, {"candidates": shown}]
    for options in each:
        ranks = tr.read_lists(run, truth, session="order", **options)
        assert ranks.ids is not None
        found = {(user, order): int(ranks.rank[40 * order + at]) for order in range(3) for at, user in enumerate(truth)}
        assert ranks.ids.tolist() == list(truth) * 3
        assert found == expected
        assert tr.estimate(ranks, "rr").n_users == 40
    own = pd.DataFrame([(user, order, truth[user][0]) for user, order in expected], columns=["user", "order", "item"])
    by_truth = tr.read_lists(run, own, session="order", depth="all")
    assert by_truth.ids is not None
    assert sorted(zip(by_truth.ids.tolist(), by_truth.rank.tolist(), strict=True)) == sorted(
        (user, rank) for (user, _), rank in expected.items()
    )


def test_clustered_errors_of_sessions() -> None:
    """The variance of means of users, by definition; sessions of a user that agree are not counted as independent."""
    run, truth, _ = sessions()
    ranks = tr.read_lists(run, truth, session="order", depth="all")
    values = tr.values(ranks, "rr").reshape(3, 40)
    sums = (values - values.mean()).sum(axis=0)
    expected = np.sqrt((sums**2).sum() * 40 / 39) / values.size
    assert tr.estimate(ranks, "rr").standard_error == pytest.approx(expected, rel=1e-12)
    other = tr.read_lists(run.sample(frac=1, random_state=1).sort_values(["user", "order"], kind="stable"), truth,
                          session="order", depth="all")  # fmt: skip
    found = tr.compare({"A": ranks, "B": other}, "rr", test="t")[0]
    gaps = (tr.values(ranks, "rr") - tr.values(other, "rr")).reshape(3, 40)
    off = (gaps - gaps.mean()).sum(axis=0)
    assert abs(found.difference) == pytest.approx(abs(gaps.mean()), rel=1e-12)
    assert found.standard_error == pytest.approx(np.sqrt((off**2).sum() * 40 / 39) / gaps.size, rel=1e-12)


def test_sessions_of_ranks() -> None:
    frame = pd.DataFrame({"user": ["b", "a", "b", "b"], "visit": [1, 1, 2, 1], "rank": [3, 4, 1, 1], "n": 9})
    ranks = tr.read_ranks(frame, session="visit")
    assert ranks.ids is not None
    assert [(name, ranks[at].rank.tolist()) for at, name in enumerate(ranks.ids.tolist())] == [
        ("b", [1, 3]), ("b", [1]), ("a", [4]),
    ]  # fmt: skip
    with pytest.raises(tr.InputError, match="has sessions, but no column of users"):
        tr.read_ranks(frame.drop(columns="user"), session="visit")
