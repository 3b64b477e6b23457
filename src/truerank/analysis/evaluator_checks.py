"""`check_evaluator`: what another evaluator does, found out with small cases whose answers are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from truerank.core.checks import InputError
from truerank.core.tables import Cell, Table, Tabular
from truerank.metrics.definitions import METRICS

Run = dict[str, list[tuple[str, float]]]
"""The list of each user: items and their scores."""
Truth = dict[str, list[str]]
"""The relevant items of each user."""
Evaluator = Callable[[Run, Truth, int], Mapping[str, float]]

K = 5
_MANY = 1_031
"""Users at a time."""
HITS = ("recall", "hr", "precision", "ndcg", "ap", "rr")
"""Metrics that are above 0 exactly if a relevant item is in the top k, the clearest first."""


_UNASKED = "not supported"


class Finding(NamedTuple):
    """What an evaluator does in one respect."""

    question: str
    answer: str
    kind: Literal["", "differs", "fault"]
    """Empty: as truerank does by default; "differs": another definition that is in use; "fault": no definition."""


@dataclass(frozen=True, repr=False)
class EvaluatorCheck(Tabular[Finding]):
    """What an evaluator does, a row per question; print it, or convert it to Markdown, LaTeX, JSON or a dataframe."""

    findings: tuple[Finding, ...]
    metrics: tuple[str, ...]
    """The metrics that the evaluator returned."""

    @property
    def faults(self) -> tuple[Finding, ...]:
        """Findings that no definition explains."""
        return tuple(each for each in self.findings if each.kind == "fault")

    def _names(self) -> list[tuple[str, ...]]:
        return [(each.question,) for each in self.findings]

    def _rows(self) -> tuple[Finding, ...]:
        return self.findings

    def to_table(self) -> Table:
        """Return the table that all text forms show."""
        rows = tuple(tuple(Cell(text) for text in each) for each in self.findings)
        return Table(Finding._fields, rows, tuple(each._asdict() for each in self.findings))


def check_evaluator(evaluate: Evaluator) -> EvaluatorCheck:
    """Find out what an evaluator does, with small cases whose answers are known.

    Parameters
    ----------
    evaluate : function
        Called as ``evaluate(run, truth, k)``. `run` has the list of each user as pairs of item and score,
        ``{"u1": [("a", 0.9), ("b", 0.5)]}``; `truth` has the relevant items of each user, ``{"u1": ["b"]}``. It returns
        the means over users by name, ``{"recall": 1.0, "ndcg": 0.63}``, of any of precision, recall, hr, rr, ap and
        ndcg, all at `k`. Wrap an evaluator with other inputs in such a function. For inputs that it can't take,
        such as a user without a list, raise NotImplementedError, and that question is left out.

    Returns
    -------
    EvaluatorCheck
        Whether rank k counts, how ties, duplicates, short lists and missing users are treated, which divisors are used,
        and whether the mean depends on batches of users. An error that the evaluator raises is an answer, too.

    Examples
    --------
    >>> import truerank as tr
    >>> def evaluate(run, truth, k):
    ...     hits = {user: [item in truth[user] for item, score in items[: k - 1]] for user, items in run.items()}
    ...     return {"recall": sum(sum(hit) / len(truth[user]) for user, hit in hits.items()) / len(hits)}
    >>> found = tr.check_evaluator(evaluate)
    >>> print(found["ranks that count"].answer)
    1 to 4 of k = 5: off by one
    >>> print(found["users without relevant items"].answer)
    raises ZeroDivisionError
    """
    if not callable(evaluate):
        raise InputError(f"`evaluate` must be a function of (run, truth, k), got {evaluate!r}.")
    case = _Case(evaluate)
    try:
        case.metrics = tuple(case.ask(*_one([0])))
    except Exception as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"`evaluate` fails for one user with one hit: {type(error).__name__}: {error}") from error
    findings = [finding for question in QUESTIONS for finding in question(case)]
    return EvaluatorCheck(tuple(each for each in findings if each.answer != _UNASKED), case.metrics)


@dataclass
class _Case:
    """Asks an evaluator, and keeps the largest value of each metric."""

    evaluate: Evaluator
    metrics: tuple[str, ...] = ()
    largest: dict[str, float] = field(default_factory=dict)
    ignores_scores: bool = False

    def ask(self, run: Run, truth: Truth) -> dict[str, float]:
        """Return values by our names of the metrics."""
        given: Any = self.evaluate({user: list(items) for user, items in run.items()}, dict(truth), K)
        if not isinstance(given, Mapping) or not given:
            raise InputError(f"`evaluate` must return a dict of metric to number, got {given!r}.")
        found = {_name(name): float(value) for name, value in given.items()}
        for name, value in found.items():
            self.largest[name] = max(value, self.largest.get(name, -math.inf))
        return found

    def answer(self, metrics: Iterable[str], *cases: tuple[Run, Truth]) -> list[float] | str:
        """Return, for each case, the first of these metrics that the evaluator has, or the error that it raises."""
        name = next(each for each in metrics if each in self.metrics)
        try:
            return [self.ask(*case)[name] for case in cases]
        except NotImplementedError:
            return _UNASKED
        except Exception as error:
            return f"raises {type(error).__name__}"


def _name(given: str) -> str:
    """Return our name of a metric, with or without its cut-off."""
    try:
        found = METRICS.read(given if "@" in str(given) else f"{given}@{K}").name
    except InputError:
        found = ""
    if found not in HITS:
        raise InputError(f"`evaluate` must return any of {', '.join(sorted(HITS))}, got {given!r}.")
    return found


def _one(hits: Sequence[int], n_relevant: int | None = None, length: int = 8) -> tuple[Run, Truth]:
    """Return a user with hits at these places, counted from 0, and further relevant items that are not listed."""
    items = [f"i{place}" for place in range(length)]
    unlisted = [f"x{at}" for at in range((n_relevant or len(hits)) - len(hits))]
    run = [(item, float(length - place)) for place, item in enumerate(items)]
    return {"u": run}, {"u": [items[place] for place in hits] + unlisted}


def _among(value: float, *known: tuple[float, str, Literal["", "differs", "fault"]]) -> tuple[str, Any]:
    """Return what a value stands for."""
    for expected, words, kind in known:
        if math.isclose(value, expected, abs_tol=1e-4):  # some libraries round to four digits
            return words, kind
    return f"unexplained: {value:.4f} instead of {known[0][0]:.4f}", "fault"


def _explained(case: _Case, question: str, metric: str, asked: tuple[Run, Truth], *known: Any) -> Iterator[Finding]:
    """Yield what one value says, if the evaluator has the metric."""
    if metric in case.metrics:
        found = case.answer([metric], asked)
        yield Finding(question, *((found, "fault") if isinstance(found, str) else _among(found[0], *known)))


def _cutoff(case: _Case) -> Iterator[Finding]:
    question, found = "ranks that count", case.answer(HITS, *(_one([place]) for place in range(8)))
    if isinstance(found, str):
        yield Finding(question, found, "fault")
        return
    counted = [place + 1 for place, value in enumerate(found) if value > 0]
    if counted == list(range(1, K + 1)):
        yield Finding(question, f"1 to {K} of k = {K}", "")
    else:
        ends = f"{counted[0]} to {counted[-1]}" if counted else "none"
        yield Finding(question, f"{ends} of k = {K}: off by one", "fault")


def _discounts(case: _Case) -> Iterator[Finding]:
    second, ideal = 1 / math.log2(3), sum(1 / math.log2(rank + 1) for rank in range(1, K + 1))
    whole = sum(1 / math.log2(rank + 1) for rank in range(1, 9))
    yield from _explained(case, "rr at rank 2", "rr", _one([1]), (0.5, "1/2", ""), (1.0, "1: ranks from 0", "fault"))
    yield from _explained(
        case, "ndcg at rank 2", "ndcg", _one([1]), (second, "discount 1 / log2(rank + 1)", ""),
        (1.0, "no discount for the first two ranks", "differs"),
        (second / ideal, "relative to k relevant items, even if there are fewer", "differs"),
    )  # fmt: skip
    yield from _explained(
        case, "ideal of ndcg", "ndcg", _one(range(K), 8), (1.0, "at most k relevant items", ""),
        (ideal / whole, "all relevant items, so a perfect list scores less than 1", "differs"),
    )  # fmt: skip


def _divisors(case: _Case) -> Iterator[Finding]:
    many, precisions = _one([0, 2], 8), 1.0 + 2 / 3
    yield from _explained(
        case, "divisor of ap", "ap", many, (precisions / K, "min(relevant, k)", ""),
        (precisions / 8, "relevant items", "differs"), (precisions / 2, "hits", "differs"),
    )  # fmt: skip
    achievable = (2 / K, "min(relevant, k)", "differs")
    yield from _explained(case, "divisor of recall", "recall", many, (2 / 8, "relevant items", ""), achievable)
    few = (1.0, "min(relevant, k)", "differs")
    yield from _explained(case, "divisor of precision", "precision", _one([0, 2]), (2 / K, "k", ""), few)
    own = (1 / 2, "the length of the list", "differs")
    short = _one([0], 8, length=2)
    yield from _explained(case, "precision of a short list", "precision", short, (1 / K, "divided by k", ""), own)


def _short(case: _Case) -> Iterator[Finding]:
    """Ask about a list of two items and about the same list with six more, none of them relevant."""
    wrong, metrics = [], [name for name in case.metrics if name != "precision"]
    for name in metrics:
        found = case.answer([name], _one([1], 8, length=2), _one([1], 8))
        if isinstance(found, str):
            yield Finding("a list shorter than k", found, "" if found == _UNASKED else "fault")
            return
        if not math.isclose(*found, abs_tol=1e-4):
            wrong.append(f"{name} {found[0]:.4g} instead of {found[1]:.4g}")
    if metrics:
        words = f"other values: {', '.join(wrong)}" if wrong else "as if irrelevant items followed"
        yield Finding("a list shorter than k", words, "differs" if wrong else "")


def _order(case: _Case) -> Iterator[Finding]:
    run, truth = _one([0])
    turned, lower = {"u": run["u"][::-1]}, {"u": [(item, score - 100.0) for item, score in run["u"]]}
    found = case.answer(HITS, (run, truth), (turned, truth))
    if isinstance(found, str):
        yield Finding("order of a list", found, "fault")
    elif found[0] == found[1]:
        yield Finding("order of a list", "by score", "")
    else:
        case.ignores_scores = True
        yield Finding("order of a list", "as listed, whatever the scores", "differs")
    before, after = case.answer(HITS, (run, truth)), case.answer(HITS, (lower, truth))
    if before == after:
        yield Finding("negative scores", "like any others", "")
    elif after == _UNASKED:
        yield Finding("negative scores", _UNASKED, "")
    else:
        yield Finding("negative scores", f"change the value from {_text(before)} to {_text(after)}", "fault")


def _text(found: list[float] | str) -> str:
    return found if isinstance(found, str) else ", ".join(f"{value:.4g}" for value in found)


def _ties(case: _Case) -> Iterator[Finding]:
    """Ten items tie: the relevant one is listed first or last, and its name is the smallest or the largest."""
    cases = []
    for own, place in (("a", 0), ("z", 0), ("a", 9), ("z", 9)):
        items = [f"i{at}" for at in range(9)]
        items.insert(place, own)
        cases.append(({"u": [(item, 1.0) for item in items]}, {"u": [own]}))
    found, best = case.answer(HITS, *cases), case.answer(HITS, _one([0]))
    if isinstance(found, str) or isinstance(best, str):
        yield Finding("equal scores", _text(found), "fault")
        return
    first_a, first_z, last_a, last_z = found
    if case.ignores_scores:
        return
    if math.isclose(max(found), min(found), abs_tol=1e-9):
        words = {0.0: "ties lose", best[0]: "ties win"}.get(first_a, "mean over their orders")
        yield Finding("equal scores", words, "differs" if words.startswith("ties") else "")
    elif (first_a, first_z) == (last_a, last_z):
        yield Finding("equal scores", f"by id, the {'smaller' if first_a > first_z else 'larger'} first", "fault")
    elif (first_a, last_a) == (first_z, last_z):
        yield Finding("equal scores", f"by order of input{'' if first_a > last_a else ', the last first'}", "fault")
    else:
        yield Finding("equal scores", "by order of input and id", "fault")


def _duplicates(case: _Case) -> Iterator[Finding]:
    below = [(f"i{at}", -float(at)) for at in range(6)]  # so that nothing unlisted can be in the top k
    listed, truth, counts = [("a", 4.0), ("a", 3.0), *below], {"u": ["a", "d"]}, HITS[:1] + HITS[2:]
    if not {*counts} & {*case.metrics}:
        return
    once = case.answer(counts, ({"u": [("a", 4.0), ("e", 3.0), *below]}, truth))
    found, question = case.answer(counts, ({"u": listed}, truth)), "an item twice in a list"
    if isinstance(found, str) or isinstance(once, str):
        yield Finding(question, _text(found), "")
    elif found[0] > once[0] + 1e-9:
        yield Finding(question, f"counts twice: {found[0]:.4g} instead of {once[0]:.4g}", "fault")
    else:
        yield Finding(question, "counts once", "")


def _missing(case: _Case) -> Iterator[Finding]:
    run, truth = _one([0])
    asked = {
        "users without relevant items": ({**run, "v": run["u"]}, {**truth, "v": []}, "left out"),
        "users without a list": (run, {**truth, "v": ["i0"]}, "count 0"),
    }
    for question, (lists, relevant, ours) in asked.items():
        found = case.answer(HITS, (run, truth), (lists, relevant))
        if isinstance(found, str):
            yield Finding(question, found, "differs")
            continue
        words, kind = _among(found[1], (found[0], "left out", "differs"), (found[0] / 2, "count 0", "differs"))
        yield Finding(question, words, "" if words == ours else kind)


def _joint(singles: Sequence[tuple[Run, Truth]], n_users: int) -> tuple[Run, Truth]:
    """Return many users: first those like the first one, then those like the second, and so on."""
    users = {f"u{at}": singles[at * len(singles) // n_users] for at in range(n_users)}
    return {u: run["u"] for u, (run, _) in users.items()}, {u: truth["u"] for u, (_, truth) in users.items()}


def _means(case: _Case) -> Iterator[Finding]:
    """Users with different numbers of relevant items: alone, together, and very many.

    Their number is prime, so that the last batch is smaller than the others whatever their size; and it consists of one
    kind of user, so that a mean over the means of batches is noticed.
    """
    singles = [_one([0], 1), _one([0, 2], 7), _one([1, 3, 4], 3)]
    wrong: dict[str, list[str]] = {}
    for name in case.metrics:
        apart, few, many = (
            case.answer([name], *asked) for asked in (singles, [_joint(singles, 3)], [_joint(singles, _MANY)])
        )
        if _UNASKED in (apart, few, many):
            yield Finding("several users", _UNASKED, "")
            return
        if isinstance(apart, str) or isinstance(few, str) or isinstance(many, str):
            wrong.setdefault(next(each for each in (apart, few, many) if isinstance(each, str)), []).append(name)
        elif not math.isclose(sum(apart) / 3, few[0], abs_tol=1e-4):
            wrong.setdefault("not the mean over users", []).append(name)
        elif not math.isclose(sum(apart[at * 3 // _MANY] for at in range(_MANY)) / _MANY, many[0], abs_tol=1e-4):
            wrong.setdefault("depends on the batches of users", []).append(name)
    answers = [f"{words}: {', '.join(dict.fromkeys(names))}" for words, names in wrong.items()]
    yield Finding("several users", "; ".join(answers) or "mean over users", "fault" if wrong else "")


def _range(case: _Case) -> Iterator[Finding]:
    above = [f"{name} {value:.4g}" for name, value in case.largest.items() if value > 1 + 1e-9]
    yield Finding("values above 1", ", ".join(above) or "none", "fault" if above else "")


QUESTIONS = (_cutoff, _order, _ties, _discounts, _divisors, _short, _duplicates, _missing, _means, _range)
