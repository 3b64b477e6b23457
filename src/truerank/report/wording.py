"""How a page words metrics, numbers and lists."""

from __future__ import annotations

import math

# longer names of metrics are words, shorter ones abbreviations
_ABBREVIATION = 5


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


def rounded(*numbers: float) -> list[str]:
    """Return numbers with equally many decimals: three significant digits of the largest one, two if it is small.

    Examples
    --------
    >>> rounded(0.00578, -0.00042, 0.01198), rounded(0.2, 0.154), rounded(33.5), rounded(0.000901), rounded(0.0)
    (['0.0058', '−0.0004', '0.0120'], ['0.200', '0.154'], ['33.5'], ['0.00090'], ['0.00'])
    """
    largest = max(map(abs, numbers))
    power = math.floor(math.log10(largest)) if 0 < largest < math.inf else 0
    digits = max(0, 2 - power if power >= -2 else 1 - power)
    return [f"{number:,.{digits}f}".replace("-", "−") for number in numbers]
