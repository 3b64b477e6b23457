"""`position_bias`: whether the place at which a candidate was shown predicts where it is ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import AnyArray, Bools, Floats, InputError, Ints, Rng, as_rng, check_whole, counted
from truerank.core.csr import bounds, places
from truerank.core.ranks import Ranks, check_ranks
from truerank.core.tables import Cell, Table, Tabular
from truerank.data.candidates import Candidates, as_candidates, positions

_THIRDS = ("first third", "middle", "last third")


class ShownAt(NamedTuple):
    """Instances whose relevant items were shown in one part of the list of candidates."""

    shown: str
    instances: int
    share_above: float
    """Share of the irrelevant candidates above a relevant item, on average: 0 is the best, 1 the worst."""


@dataclass(frozen=True, repr=False)
class PositionBias(Tabular[ShownAt]):
    """Whether the place at which relevant items were shown predicts their rank.

    Attributes
    ----------
    correlation : float
        Between place and rank, within the groups that are permuted. Above 0: items shown first tend to be ranked first.
    change : float
        By how many places the rank gets worse from the first place shown to the last, in a linear fit.
    p_value : float
        Two-sided p-value of no influence, by permutation.
    thirds : tuple of ShownAt
        Share of the irrelevant candidates above a relevant item, by place.
    notes : tuple of str
    """

    correlation: float
    change: float
    p_value: float
    thirds: tuple[ShownAt, ...]
    notes: tuple[str, ...] = ()

    def _names(self) -> list[tuple[str, ...]]:
        return [(each.shown,) for each in self.thirds]

    def _rows(self) -> tuple[ShownAt, ...]:
        return self.thirds

    def to_table(self) -> Table:
        """Return the table that all text forms show."""
        found = f"correlation of place shown and rank {self.correlation:.3f}, p = {self.p_value:.2g}"
        moved = f"from the first place shown to the last, the rank gets {abs(self.change):.1f} places"
        about = f"{moved} {'worse' if self.change >= 0 else 'better'}"
        cells = tuple(
            (Cell(row.shown), Cell(str(row.instances)), Cell(f"{row.share_above:.3f}")) for row in self.thirds
        )
        records = tuple(row._asdict() | {"p_value": self.p_value} for row in self.thirds)
        return Table(("shown in the", "instances", "share above"), cells, records, (found, about, *self.notes))


def position_bias(
    ranks: Ranks, candidates: Candidates | Any, *, replicates: int = 9_999, rng: Rng = None
) -> PositionBias:
    """Test whether the place at which a relevant candidate was shown predicts its rank.

    Language models tend to prefer what they read first, or last. The test permutes places, not ranks: among the
    sessions of a user who has several, and otherwise among users with equally many candidates. If candidates were shown
    in an order that does not depend on what is relevant, such as a random one, all permutations are equally likely
    unless the place matters. So the p-value is valid for any number of users, and however their ranks depend on each
    other.

    Parameters
    ----------
    ranks : Ranks
        Ranks of relevant items among the candidates, as `read_lists` returns them: with `items`, and users as `ids`.
        The sessions of a user are in ascending order.
    candidates : Candidates, or dict of user to items
        What was shown, in the order in which it was shown, with the same sessions.
    replicates : int
        Random permutations.
    rng : int or numpy.random.Generator, optional
        Seed of the permutations.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> rng = np.random.default_rng(0)
    >>> shown = {user: rng.permutation(20).tolist() for user in range(200)}
    >>> lazy = {user: items[:5] + sorted(items[5:]) for user, items in shown.items()}  # keeps the first five in place
    >>> ranks = tr.read_lists(lazy, {user: [7] for user in shown}, candidates=shown)
    >>> print(tr.position_bias(ranks, shown, rng=1))
    shown in the  instances  share above
    first third          63        0.201
    middle               65        0.526
    last third           72        0.532
    note: correlation of place shown and rank 0.759, p = 0.0001
    note: from the first place shown to the last, the rank gets 9.2 places worse
    """
    check_ranks(ranks)
    check_whole("replicates", replicates, 99)
    if ranks.items is None or ranks.ids is None:
        raise InputError("`ranks` must know their users and items (`ids`, `items`), as those of tr.read_lists do.")
    given = as_candidates(candidates)
    if not isinstance(given, Candidates) or given.users is None:
        raise InputError("`candidates` must be a dict of user to items, or tr.read_candidates(...) with users.")
    place, size = _places_shown(ranks, given)
    there, lost = place >= 0, int((place < 0).sum())
    known = np.bincount(ranks.instance[there], minlength=len(ranks))
    kept = (known > 0) & (size > 1) & (ranks.draws > 0)
    x, y = (
        _mean(ranks, values, there)[kept] for values in (place / np.maximum(size - 1, 1)[ranks.instance], _share(ranks))
    )
    stratum = _strata(ranks.ids[kept], known[kept], size[kept])
    x_off, y_off = _centred(x, stratum), _centred(y, stratum)
    if not np.any(np.abs(x_off) > 1e-12):
        raise InputError("relevant items are always shown at the same place, so its influence can't be measured.")
    product, spread = float(x_off @ y_off), float(np.sqrt((x_off @ x_off) * (y_off @ y_off)))
    words = "relevant item was not shown and is left out", "relevant items were not shown and are left out"
    return PositionBias(
        product / spread if spread else 0.0,
        product / float(x_off @ x_off) * float(ranks.draws[kept].mean()),
        _p_value(x_off, y_off, stratum, replicates, as_rng(rng)),
        _thirds(x, y),
        (counted(lost, *words),) if lost else (),
    )


def _places_shown(ranks: Ranks, shown: Candidates) -> tuple[Ints, Ints]:
    """Return the place of each relevant item among the candidates shown, -1 if it was not, and how many were shown."""
    users, owner = np.unique(np.asarray(shown.users), return_inverse=True)
    sessions = (
        np.zeros(owner.size, np.int64) if shown.sessions is None else np.unique(shown.sessions, return_inverse=True)[1]
    )
    pair, group = np.unique(owner * (sessions.max(initial=0) + 1) + sessions, return_inverse=True)
    whose = pair // (sessions.max(initial=0) + 1)  # the user of each group, ascending
    sizes = np.bincount(group)
    order = np.argsort(group, kind="stable")
    place = np.empty(group.size, np.int64)
    place[order] = places(bounds(sizes)) - 1
    mine = positions(ranks.ids, users)  # type: ignore[arg-type]
    nth = _occurrence(mine)
    asked, offered = np.bincount(mine[mine >= 0], minlength=users.size), np.bincount(whose, minlength=users.size)
    if np.any(mine < 0) or np.any(wrong := (asked != offered) & (asked > 0)):
        at = int(np.argmax(mine < 0)) if np.any(mine < 0) else int(np.argmax(wrong[mine]))
        name = ranks.ids[at].tolist()  # type: ignore[index]
        raise InputError(f"`candidates` must show user {name!r} as many lists as there are instances of the user.")
    own = bounds(offered)[:-1][mine] + nth
    names, item = np.unique(shown.items, return_inverse=True)
    keys, first = np.unique(group * names.size + item, return_index=True)
    code = positions(ranks.items, names)  # type: ignore[arg-type]
    wanted = own[ranks.instance] * names.size + code
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where((code >= 0) & (keys[at] == wanted), place[first[at]], -1), sizes[own]


def _occurrence(ids: Ints) -> Ints:
    """Return how often each id has occurred before."""
    order = np.argsort(ids, kind="stable")
    counts = np.bincount(ids - ids.min(initial=0))
    before = np.empty(ids.size, np.int64)
    before[order] = places(bounds(counts)) - 1
    return before


def _share(ranks: Ranks) -> Floats:
    """Return the share of irrelevant candidates above each relevant item; tied ones count half."""
    return (ranks.above + ranks.tied / 2) / np.maximum(ranks.item_n - ranks.item_n_relevant, 1)


def _mean(ranks: Ranks, values: Floats, there: Bools) -> Floats:
    sums = np.bincount(ranks.instance[there], values[there], minlength=len(ranks))
    return sums / np.maximum(np.bincount(ranks.instance[there], minlength=len(ranks)), 1)


def _strata(ids: AnyArray, known: Ints, size: Ints) -> Ints:
    """Return groups within which places can be exchanged: each user with several instances, and similar other users."""
    _, user, times = np.unique(ids, return_inverse=True, return_counts=True)
    alone = times[user] == 1
    labels = np.column_stack([np.where(alone, -1, user), np.where(alone, known, 0), np.where(alone, size, 0)])
    return np.unique(labels, axis=0, return_inverse=True)[1].ravel()


def _centred(values: Floats, stratum: Ints) -> Floats:
    return values - (np.bincount(stratum, values) / np.bincount(stratum))[stratum]


def _p_value(x: Floats, y: Floats, stratum: Ints, replicates: int, rng: np.random.Generator) -> float:
    """Return the share of permutations within strata, the given one among them, with as strong an association."""
    order = np.argsort(stratum, kind="stable")
    x, y, stratum = x[order], y[order], stratum[order]
    least = abs(float(x @ y)) - 1e-12 * max(float(np.abs(x) @ np.abs(y)), 1e-300)
    hits = sum(abs(float(x[np.lexsort((rng.random(x.size), stratum))] @ y)) >= least for _ in range(replicates))
    return (1 + hits) / (1 + replicates)


def _thirds(x: Floats, y: Floats) -> tuple[ShownAt, ...]:
    part = np.minimum((3 * x).astype(np.int64), 2)
    return tuple(
        ShownAt(name, int((part == at).sum()), float(y[part == at].mean()) if np.any(part == at) else float("nan"))
        for at, name in enumerate(_THIRDS)
    )
