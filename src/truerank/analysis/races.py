"""`race`: ranks users in random order until the order of two recommenders is certain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from truerank.core.checks import AnyArray, InputError, Rng, as_rng, check_whole
from truerank.core.ranks import Ranks, n_named
from truerank.core.tables import Record, Table, Tabular
from truerank.core.threads import progress_bar
from truerank.data.splits import Split
from truerank.estimators.corrected import AnyMetric, as_metrics
from truerank.evaluation.anytime_tests import AnytimeTest
from truerank.evaluation.comparisons import compare
from truerank.evaluation.differences import Difference
from truerank.evaluation.paired_tests import PairedTest
from truerank.metrics.definitions import Metric
from truerank.ranking.exact import rank
from truerank.ranking.held_out import HeldOut
from truerank.scoring.conversion import Scoreable

# each round adds this many users, or multiplies their number by this factor
_FIRST = 100
_GROWTH = 1.1


@dataclass(frozen=True, repr=False)
class Race(Tabular[Record]):
    """How two recommenders differ, found on as many users as it took.

    Attributes
    ----------
    difference : Difference
        On the users that were ranked. Interval, p-value and verdict are valid although the race stopped as soon as they
        were clear. The difference itself is a little too large on average, because large ones stop the race early.
    ranks : dict of name to Ranks
        Ranks of the users that were ranked, in their random order.
    users, population : int
        How many users were ranked, and how many there are.
    """

    difference: Difference
    ranks: Mapping[str, Ranks]
    users: int
    population: int

    @property
    def decided(self) -> bool:
        """Whether it is certain who is better, or that no difference beyond the margin exists."""
        return _is_decided(self.difference)

    @property
    def conclusion(self) -> str:
        """The verdict, and after how many users it was certain."""
        return f"{self.difference.verdict}, after {self.users:,} of {self.population:,} users."

    def to_table(self) -> Table:
        """Return one row, as in the table of a comparison, and the conclusion."""
        found = self.difference.to_table()
        records = tuple({**each, "users": self.users, "population": self.population} for each in found.records)
        return replace(found, records=records, conclusions=(self.conclusion,))

    def _names(self) -> list[tuple[str, ...]]:
        return self.difference._names()


def race(
    recommenders: Mapping[str, Scoreable],
    split: Split,
    metric: AnyMetric,
    *,
    margin: float | None = None,
    level: float = 0.95,
    new_users: bool = False,
    most: int | None = None,
    rng: Rng = None,
    threads: int | None = None,
    progress: bool = False,
) -> Race:
    """Return which of two recommenders is better, ranking only as many users as that takes.

    Users are ranked in random order. After each round the recommenders are compared, by a test that may be repeated any
    number of times: the probability of a wrong verdict is at most 1 - `level`, whenever the race stops.

    Parameters
    ----------
    recommenders : dict of name to scorer or model
        Two of them, as for `truerank.rank`.
    split : Split
    metric : str, Metric or function
    margin : float, optional
        A difference that does not matter: the race also stops when larger ones are ruled out in both directions.
        Without it, equally good recommenders are ranked for all users.
    level : float
    new_users : bool
        Whether the verdict should hold for new users like these; by default it is about the users of the split, and
        ranking all of them settles it.
    most : int, optional
        Largest number of users to rank.
    rng : int or numpy.random.Generator, optional
        Seed of the order of the users.
    threads, progress
        As for `truerank.rank`.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.normal(size=(3_000, 8)), rng.normal(size=(500, 8))
    >>> test = (users @ items.T + rng.gumbel(size=(3_000, 500)) * 2).argmax(axis=1, keepdims=True).tolist()
    >>> split = tr.Split(*(tr.Interactions.of(own, "", n_users=3_000, n_items=500) for own in ([[]] * 3_000, test)))
    >>> rough = tr.Factors(users + rng.normal(size=users.shape) / 2, items)
    >>> found = tr.race({"A": tr.Factors(users, items), "B": rough}, split, "ndcg@10", rng=0)
    >>> found.difference.verdict, found.users < found.population
    ('A is better', True)
    """
    [chosen] = as_metrics(metric)
    if n_named(recommenders) != 2:
        raise InputError(f"a race needs exactly two recommenders, by name, got {n_named(recommenders)}.")
    if most is not None:
        check_whole("most", most, 2)
    order = as_rng(rng)
    names = order.permutation(_users(recommenders, split))
    test, last = AnytimeTest(None if new_users else names.size), min(names.size, most or names.size)
    ranks: dict[str, Ranks] = {}
    users, found = 0, None
    with progress_bar("users", progress, total=last, leave=False) as bar:
        while found is None or not (_is_decided(found) or users == last):
            start, users = users, min(max(users + _FIRST, int(users * _GROWTH)), last)
            more = rank(recommenders, split, users=names[start:users], threads=threads)
            # in the order of the data, values could be predictable
            places = order.permutation(users - start)
            own = {name: replace(one, notes=())[places] for name, one in more.items()}
            ranks = {name: Ranks.concatenate([ranks[name], one]) if ranks else one for name, one in own.items()}
            found = _difference(ranks, chosen, test, level, margin)
            bar.update(users - start)
    return Race(found, ranks, users, names.size)


def _users(recommenders: Mapping[str, Scoreable], split: Split) -> AnyArray:
    """Return the names of all users with held-out items."""
    held = HeldOut.of(list(recommenders.values()), split)
    if held.users.size < 2:
        raise InputError(f"a race needs at least two users with held-out items, got {held.users.size}.")
    return np.asarray(held.test.names[held.users])


def _difference(
    ranks: Mapping[str, Ranks], metric: Metric, test: PairedTest, level: float, margin: float | None
) -> Difference:
    found = compare(ranks, metric, test=test, level=level, margin=margin)[0].reversed()
    if found.n_undefined:
        raise InputError(f"a race needs a metric that is defined for every user, but {metric} is not.")
    return found


def _is_decided(found: Difference) -> bool:
    return found.finding.kind in ("better", "equivalent")
