"""What may be assumed of exact ranks, so that sampled ones tell more about them."""

from __future__ import annotations

from typing import Literal, get_args

from truerank.errors import InputError

Assumption = Literal["nothing", "falling", "smooth"]
"""What may be assumed of the exact ranks, among the top tenth of the candidates, for the first relevant item of an
instance. "falling": a deeper rank is never more likely. "smooth": besides, a rank twice as deep is at least a quarter
as likely, whether probabilities fall in steps or as 1 / rank^2. Each includes the one before."""

ASSUMPTIONS: tuple[Assumption, ...] = get_args(Assumption)
"""From the weakest to the strongest."""

ASSUMING: dict[Assumption, str] = {
    "nothing": "whatever the distribution of the ranks",
    "falling": "if deeper ranks are never more likely among the top tenth",
    "smooth": "if probabilities of ranks fall among the top tenth, to no less than a quarter at twice the rank",
}
"""The assumptions in words, for notes."""

LEAST_AT_TWICE = 0.25
"""How likely a rank twice as deep is at least, relative to a rank, if probabilities are smooth."""


def check_assumption(assume: object) -> None:
    """Refuse what can't be assumed."""
    if assume not in ASSUMPTIONS:
        raise InputError(f"`assume` must be one of {', '.join(map(repr, ASSUMPTIONS))}, got {assume!r}.")


def strongest(*assumptions: Assumption) -> Assumption:
    """Return the assumption that includes all others."""
    return max(assumptions, key=ASSUMPTIONS.index)
