"""How a page words metrics, numbers and lists."""

from __future__ import annotations

from collections.abc import Sequence

# longer names of metrics are words, shorter ones abbreviations
_ABBREVIATION = 4


def shown_name(metric: str) -> str:
    """Return how a page writes the text form of a metric.

    Examples
    --------
    >>> [shown_name(name) for name in ("ndcg@10", "recall@10~bv(0.1)", "ap", "r-precision")]
    ['NDCG@10', 'Recall@10~bv(0.1)', 'AP', 'R-precision']
    """
    head, mark, correction = metric.partition("~")
    name = head.split("@")[0].split("(")[0]
    shown = name.upper() if len(name) <= _ABBREVIATION else name[0].upper() + name[1:]
    return shown + head[len(name) :] + mark + correction


def decimals(number: float) -> str:
    """Return a number with four decimals, or with fewer where three significant digits are enough.

    Examples
    --------
    >>> decimals(0.04591), decimals(0.89114), decimals(1234.5), decimals(-0.00002)
    ('0.0459', '0.891', '1,234.5', '-0.00002')
    """
    size = abs(number)
    if size and size < 0.0005:
        return f"{number:.1g}" if size < 0.00001 else f"{number:.5f}"
    return f"{number:,.1f}" if size >= 100 else f"{number:.3f}" if size >= 0.1 else f"{number:.4f}"


def enumerated(names: Sequence[str]) -> str:
    """Return names as a sentence lists them.

    Examples
    --------
    >>> enumerated(["A"]), enumerated(["A", "B"]), enumerated(["A", "B", "C"])
    ('A', 'A and B', 'A, B and C')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
