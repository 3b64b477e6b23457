"""Evaluators with one peculiarity each, and whether it is found."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import truerank as tr
from truerank.analysis.evaluator_checks import Run, Truth


def evaluator(
    *,
    last: Callable[[int], int] = lambda k: k,
    key: Callable[[tuple[str, float]], Any] | None = lambda pair: -pair[1],
    recall: Callable[[int, int], int] = lambda relevant, k: relevant,
    ap: Callable[[int, int, int], int] = lambda relevant, k, hits: min(relevant, k),
    short: bool = False,
    twice: bool = False,
    empty: float | None = None,
    unlisted: bool = True,
    pooled: bool = False,
    batch: int = 10_000,
    cut_ideal: bool = False,
    original: bool = False,
    first: int = 1,
) -> Callable[[Run, Truth, int], dict[str, float]]:
    """Return a plain evaluator; each option makes it do one thing differently."""

    def one(items: list[tuple[str, float]], truth: list[str], k: int) -> dict[str, float]:
        order = items if key is None else sorted(items, key=key)
        names = [item for item, _ in order]
        names = names if twice else list(dict.fromkeys(names))
        hits = [rank for rank, item in enumerate(names[: last(k)], start=1) if item in truth]
        gain = (lambda rank: 1 / math.log2(max(rank, 2))) if original else (lambda rank: 1 / math.log2(rank + 1))
        return {
            "recall": len(hits) / recall(len(truth), k),
            "precision": len(hits) / (min(k, len(items)) if short else k),
            "map": sum(at / rank for at, rank in enumerate(hits, start=1)) / max(ap(len(truth), k, len(hits)), 1),
            "ndcg@5": sum(map(gain, hits))
            / sum(map(gain, range(1, min(len(truth), k, len(items) if cut_ideal else k) + 1))),
            "mrr": 1 / (hits[0] - 1 + first) if hits and hits[0] - 1 + first else float(bool(hits)),
        }

    def evaluate(run: Run, truth: Truth, k: int) -> dict[str, float]:
        users = [user for user in truth if (truth[user] or empty is not None) and (user in run or unlisted)]
        zero = {"recall": 0.0, "precision": 0.0, "map": 0.0, "ndcg@5": 0.0, "mrr": 0.0}
        rows = [one(run.get(user, []), truth[user], k) if truth[user] else zero for user in users]
        parts = [rows[at : at + batch] for at in range(0, len(rows), batch)]
        means = [{name: sum(row[name] for row in part) / len(part) for name in zero} for part in parts]
        found = {name: sum(each[name] for each in means) / len(means) for name in zero}
        if pooled:
            found["recall"] = sum(row["recall"] * len(truth[user]) for row, user in zip(rows, users, strict=True))
            found["recall"] /= max(sum(len(truth[user]) for user in users), 1)
        return found

    return evaluate


def by_truerank(run: Run, truth: Truth, k: int) -> dict[str, float]:
    ranks = tr.read_lists({user: dict(items[::-1]) for user, items in run.items()}, truth, depth=10)
    table = tr.evaluate(ranks, [f"{name}@{k}" for name in ("recall", "precision", "ap", "ndcg", "rr", "hr")])
    return {cell.metric: cell.mean for cell in table.estimates}


def test_truerank_does_as_it_says() -> None:
    found = tr.check_evaluator(by_truerank)
    assert not found.faults
    assert not [each for each in found if each.kind]
    assert found["equal scores"].answer == "mean over their orders"


@pytest.mark.parametrize(
    ("questions", "unsupported"),
    [
        (["order of a list"], lambda run: scores_of(run) != sorted(scores_of(run), reverse=True)),
        (["negative scores"], lambda run: min(scores_of(run)) < -50),
        (["equal scores"], lambda run: len(run) == 1 and len(set(scores_of(run))) == 1),
        (["a list shorter than k", "precision of a short list"], lambda run: len(scores_of(run)) < 5),
        (["several users"], lambda run: len(run) > 3),
    ],
)
def test_what_an_evaluator_does_not_support_is_left_out(
    questions: list[str], unsupported: Callable[[Run], bool]
) -> None:
    plain = evaluator()

    def partial(run: Run, truth: Truth, k: int) -> dict[str, float]:
        if unsupported(run):
            raise NotImplementedError
        return plain(run, truth, k)

    others = [each for each in tr.check_evaluator(plain) if each.question not in questions]
    assert list(tr.check_evaluator(partial)) == others


def scores_of(run: Run) -> list[float]:
    """Return the scores of the first user."""
    return [score for _, score in next(iter(run.values()))]


def test_evaluators_that_raise_errors_are_described() -> None:
    """It takes only what it is asked about first: one user, whose first item is relevant."""
    plain, taken = evaluator(), list[tuple[Run, Truth]]()

    def fragile(run: Run, truth: Truth, k: int) -> dict[str, float]:
        taken.append((run, truth))
        if taken[-1] != taken[0]:
            raise ValueError("other input")
        return plain(run, truth, k)

    found = tr.check_evaluator(fragile)
    assert {each.answer.partition(":")[0] for each in found if each.question != "values above 1"} == {
        "raises ValueError", "change the value from 1 to raises ValueError"
    }  # fmt: skip


def test_a_plain_evaluator_differs_in_ties_alone() -> None:
    found = tr.check_evaluator(evaluator())
    assert [each.question for each in found if each.kind] == ["equal scores"]
    assert found["equal scores"].answer == "by order of input"
    assert found.metrics == ("recall", "precision", "ap", "ndcg", "rr")


@pytest.mark.parametrize(
    ("options", "question", "answer", "kind"),
    [
        ({"last": lambda k: k - 1}, "ranks that count", "1 to 4 of k = 5: off by one", "fault"),
        ({"last": lambda k: k + 1}, "ranks that count", "1 to 6 of k = 5: off by one", "fault"),
        ({"key": lambda pair: (-pair[1], pair[0])}, "equal scores", "by id, the smaller first", "fault"),
        ({"key": None}, "order of a list", "as listed, whatever the scores", "differs"),
        ({"key": lambda pair: -abs(pair[1])}, "negative scores", "change the value from 1 to 0", "fault"),
        ({"recall": min}, "divisor of recall", "min(relevant, k)", "differs"),
        ({"ap": lambda relevant, k, hits: relevant}, "divisor of ap", "relevant items", "differs"),
        ({"ap": lambda relevant, k, hits: hits}, "divisor of ap", "hits", "differs"),
        ({"ap": lambda relevant, k, hits: 3}, "divisor of ap", "unexplained: 0.5556 instead of 0.3333", "fault"),
        ({"short": True}, "precision of a short list", "the length of the list", "differs"),
        ({"twice": True}, "an item twice in a list", "counts twice: 1 instead of 0.5", "fault"),
        ({"empty": 0.0}, "users without relevant items", "count 0", "differs"),
        ({"unlisted": False}, "users without a list", "left out", "differs"),
        ({"pooled": True}, "several users", "not the mean over users: recall", "fault"),
        *(
            ({"batch": size}, "several users", "depends on the batches of users: ", "fault")
            for size in (32, 100, 256, 1024)
        ),
        ({"cut_ideal": True}, "a list shorter than k", "other values: ndcg 0.3869 instead of 0.214", "differs"),
        ({}, "a list shorter than k", "as if irrelevant items followed", ""),
        ({"original": True}, "ndcg at rank 2", "no discount for the first two ranks", "differs"),
        ({"first": 0}, "rr at rank 2", "1: ranks from 0", "fault"),
    ],
)
def test_every_peculiarity_is_found(options: dict[str, Any], question: str, answer: str, kind: str) -> None:
    found = tr.check_evaluator(evaluator(**options))[question]
    assert found.answer.startswith(answer)
    assert found.kind == kind


def test_values_above_one_and_errors_are_answers() -> None:
    def evaluate(run: Run, truth: Truth, k: int) -> dict[str, float]:
        if any(user not in run for user in truth):
            raise KeyError("v")
        return {"ndcg": 2.0 * evaluator()(run, truth, k)["ndcg@5"]}

    found = tr.check_evaluator(evaluate)
    assert found["values above 1"].answer == "ndcg 2"
    assert found["users without a list"] == ("users without a list", "raises KeyError", "differs")
    assert "divisor of recall" not in [each.question for each in found]


@pytest.mark.parametrize(
    ("evaluate", "message"),
    [
        (5, r"`evaluate` must be a function of \(run, truth, k\), got 5"),
        (lambda run, truth, k: 0.5, "must return a dict of metric to number, got 0.5"),
        (lambda run, truth, k: {"b": 1.0}["a"], "`evaluate` fails for one user with one hit: KeyError: 'a'"),
        (lambda run, truth, k: {"coverage": 0.5}, "must return any of ap, hr, ndcg, .*, got 'coverage'"),
    ],
)
def test_what_is_refused(evaluate: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.check_evaluator(evaluate)
