"""What a comparison comes to, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from truerank.evaluation.comparisons import Comparison
from truerank.evaluation.differences import Difference


def conclusions(result: Comparison) -> tuple[str, ...]:
    """Return a sentence for each metric, and for each group if there are groups.

    Examples
    --------
    >>> import truerank as tr
    >>> a, b = tr.Ranks.from_ranks([5, 6] * 20, n=9), tr.Ranks.from_ranks([1, 2] * 20, n=9)
    >>> conclusions(tr.compare({"A": a, "B": b, "C": a}, "rr"))
    ('rr: B is best: it is better than A, C.',)
    """
    return tuple(
        f"{f'{group}, ' if group else ''}{metric}: {_sentence(result, metric, group)}"
        for group in result.groups or ("",)
        for metric in result.metrics
    )


def _sentence(result: Comparison, metric: str, group: str) -> str:
    own = [each for each in result.differences if (each.metric, each.group) == (metric, group)]
    baselines = {each.baseline for each in own}
    if len(own) == 1:
        return f"{own[0].verdict}."
    if len(baselines) == 1:
        return _against(own, own[0].baseline)
    wins = {name: sum(_winner(each) == name for each in own) for name in result.recommenders}
    means = {each.recommender: each.mean for each in own} | {each.baseline: each.baseline_mean for each in own}
    sign = -1 if own[0].lower_is_better else 1
    best = max(result.recommenders, key=lambda name: sign * means[name])
    beaten = [name for name in result.recommenders if name != best and _winner(_between(own, best, name)) == best]
    if not wins[best]:
        return f"{best} has the best mean, but {_open(own[0], 'any other')}."
    rest = [name for name in result.recommenders if name not in (best, *beaten)]
    if rest:
        return f"{best} is better than {', '.join(beaten)}; {_open(own[0], ', '.join(rest))}."
    return f"{best} is best: it is better than {', '.join(beaten)}."


def _against(own: Sequence[Difference], baseline: str) -> str:
    better = [each.recommender for each in own if _winner(each) == each.recommender]
    worse = [each.recommender for each in own if _winner(each) == baseline]
    open_ = [each.recommender for each in own if _winner(each) is None]
    parts = [
        (better, f"better than {baseline}: "),
        (worse, f"worse than {baseline}: "),
        (open_, f"{_open(own[0], baseline)}: "),
    ]
    return "; ".join(words + ", ".join(names) for names, words in parts if names) + "."


def _open(each: Difference, others: str) -> str:
    """What to say of recommenders whose order was not found."""
    if each.bounded:
        return f"the order with {others} is not determined by this sample"
    return f"no difference from {others} was found"


def _between(own: Sequence[Difference], one: str, other: str) -> Difference:
    return next(each for each in own if {each.recommender, each.baseline} == {one, other})


def _winner(each: Difference) -> str | None:
    """The better one, if a difference was found."""
    if not each.adjusted_p_value <= 1 - each.level:
        return None
    return each.recommender if each.gain > 0 else each.baseline
