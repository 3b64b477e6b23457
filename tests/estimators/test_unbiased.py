"""Metrics cut at what the design decides: exactly unbiased, whatever the ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

import truerank as tr
from truerank.estimators.corrected import Corrected
from truerank.estimators.unbiased import Possible
from truerank.evaluation.intervals import attainable

CUT = ["recall@4", "ndcg@4", "ap@3", "rr@2", "precision@1", "f1@4"]
UNCUT = ["ap", "rr", "auc", "mean-rank"]

Record = tuple[tuple[int, int], ...]
"""Of each relevant item: how many draws, and how many of them above it."""


def places(N: int, above: list[int]) -> Iterator[list[set[int]]]:
    """Yield, equally likely, at which draws the candidates above each item come; those above a higher item are some."""
    if not above:
        yield []
        return
    *higher, last = above
    for chosen in combinations(range(1, N + 1), last):
        for within in places(last, higher):
            yield [*({chosen[place - 1] for place in each} for each in within), set(chosen)]


def record(hits: set[int], N: int, design: tr.InverseSampling, line: int, ends: set[int]) -> tuple[int, int]:
    """Draw one by one; draws can end after those in `ends` only."""
    count = 0
    for drawn in range(1, N + 1):
        count += drawn in hits
        enough = design.hits if drawn <= line else design.decides_below
        if count >= enough and drawn in ends:
            return drawn, count
    return N, count


def every_record(N: int, above: list[int], design: tr.InverseSampling, line: int) -> Counter[Record]:
    ends = {16, 32} if design.whole else set(range(1, N + 1))
    return Counter(tuple(record(each, N, design, line, ends) for each in some) for some in places(N, above))


def as_ranks(records: list[Record], N: int, design: tr.InverseSampling) -> tr.Ranks:
    drawn, above = np.array(records).reshape(-1, 2).T
    n_relevant = len(records[0])
    return tr.Ranks(
        above=above,
        n_candidates=drawn.reshape(-1, n_relevant).max(axis=1) + n_relevant,
        indptr=np.arange(len(records) + 1) * n_relevant,
        sample=tr.Sample(design, N + n_relevant, drawn),
    )


CASES = [
    (tr.InverseSampling(2, decide=4, beyond=0.4), {7: 2, 9: 3, 3: 1, 1: 0}),
    (tr.InverseSampling(1, decide=4, beyond=0.5), {7: 3, 5: 2, 2: 0}),
    (tr.InverseSampling(3, decide=5, beyond=0.9), {7: 5, 8: 6}),
    (tr.InverseSampling(2, most=3, decide=4, beyond=0.8), {7: 3, 9: 3, 4: 2}),
    (tr.InverseSampling(2, whole=True, decide=4, beyond=0.95), {20: 16, 19: 16, 17: 0}),
    (tr.InverseSampling(4), {7: 7, 3: 3}),
]
"""Designs, and for numbers of candidates after how many draws items go on."""


@pytest.mark.parametrize("above", [[0], [1], [2], [3], [6], [1, 3], [0, 2, 2, 5]], ids=str)
@pytest.mark.parametrize(("design", "lines"), CASES, ids=lambda each: str(each) if hasattr(each, "hits") else "")
def test_unbiased_over_all_orders_of_the_candidates(
    design: tr.InverseSampling, lines: dict[int, int], above: list[int]
) -> None:
    metrics = CUT if design.whole else CUT + [each for each in UNCUT if design.hits > 1 or each in ("ap", "rr")]
    for N, line in lines.items():
        own = [min(each, N) for each in above] if N < 16 or len(above) < 4 else above[:3]
        assert design.line(N) == (N if design.decide is None else line)
        found = every_record(N, own, design, int(design.line(N)))
        sampled = as_ranks(list(found), N, design)
        chances = np.array(list(found.values())) / found.total()
        exact = tr.Ranks(above=own, n_candidates=N + len(own), indptr=[0, len(own)])
        for metric in metrics:
            mean = chances @ tr.values(sampled, metric)
            assert mean == pytest.approx(tr.values(exact, metric).item(), rel=1e-12, abs=1e-13), (N, metric)


def test_own_numbers_of_candidates_stand_in_one_evaluation() -> None:
    design = tr.InverseSampling(2, decide=4, beyond=0.4)
    parts = {N: as_ranks([((3, 2),), ((N, 3),)], N, design) for N in (7, 12)}
    together = tr.Ranks.concatenate(list(parts.values()))
    alone = np.concatenate([tr.values(one, "recall@4") for one in parts.values()])
    assert tr.values(together, "recall@4").tolist() == alone.tolist()
    assert alone[1] != alone[3]


def test_scores_are_asked_for_by_the_rule() -> None:
    """What was asked for, in its order, gives the record that was returned, and nothing more than a batch is wasted."""
    rng, n_users, n_items = np.random.default_rng(0), 40, 300
    scores, test = rng.random((n_users, n_items)), [[1, 5]] * n_users
    for user in range(n_users):
        scores[user, [1, 5]] = np.sort(scores[user])[[-1 - user // 4, -20]] + 1e-9  # no ties
    asked: dict[int, list[int]] = {user: [] for user in range(n_users)}

    def score(users: np.ndarray, items: np.ndarray) -> np.ndarray:
        for user, item in zip(users.tolist(), items.tolist(), strict=True):
            asked[user].append(item)
        return scores[users, items]

    design = tr.InverseSampling(2, decide=10, beyond=0.2)
    scorer = tr.FunctionScorer(score, pairs=True, n_items=n_items)
    ranks = tr.rank_sampled(scorer, test=test, design=design, rng=1)
    assert ranks.n_scored.tolist() == [len(own) for own in asked.values()]
    N, exact = n_items - 2, tr.rank(scores, test=test)
    for user, own in asked.items():
        order = [item for item in own if item not in (1, 5)]
        for place, relevant in enumerate(sorted((1, 5), key=lambda item: -scores[user, item])):
            hits = {at for at, item in enumerate(order, 1) if scores[user, item] > scores[user, relevant]}
            drawn, above = record(hits, N, design, 59, set(range(1, N + 1)))
            assert (ranks.item_draws[2 * user + place], ranks.above[2 * user + place]) == (drawn, above)
            if drawn == N:
                assert above == exact.above[2 * user + place]
    assert {10, 2} < set(ranks.above.tolist())


def test_text_forms_and_files_keep_what_is_decided(tmp_path: object) -> None:
    design = tr.InverseSampling(3, decide=10, beyond=0.25)
    assert str(design) == "inverse(3, decide=10, beyond=0.25)"
    assert tr.Sample(str(design), 20).design == design
    ranks = design.draw(tr.Ranks.from_ranks([3, 50], n=100), rng=0)
    ranks.save(f"{tmp_path}/ranks.parquet")
    assert tr.Ranks.load(f"{tmp_path}/ranks.parquet") == ranks


def test_what_is_not_decided_is_estimated_otherwise_or_refused() -> None:
    ranks = tr.InverseSampling(2, decide=5).draw(tr.Ranks.from_ranks([3, 50] * 20, n=100), rng=0)
    found = tr.evaluate(ranks, ["recall@5", "recall@10", "ap", "auc"])
    assert found.metrics == ("recall@5~unbiased", "recall@10~smooth", "ap~unbiased", "auc~unbiased")
    with pytest.raises(tr.InputError, match=r"recall@10 has no useful unbiased estimate under inverse\(decide=5\)"):
        tr.values(ranks, "recall@10~unbiased")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decide": 2}, "`decide` must be a whole number from 3, got 2"),
        ({"decide": 10, "beyond": 1.0}, "`beyond` must be a share of the candidates between 0 and 1, got 1.0"),
        ({"decide": 10, "beyond": "x"}, "`beyond` must be a share of the candidates between 0 and 1"),
    ],
)
def test_wrong_settings(options: dict[str, float], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.InverseSampling(2, **options)  # type: ignore[arg-type]


def test_scores_can_not_run_out_before_items_are_decided() -> None:
    with pytest.raises(tr.InputError, match=r"can't be ended by `most_scores`"):
        tr.rank_sampled(np.eye(5), test=[[0]] * 5, design="inverse(decide=10)", most_scores=20)


def test_the_interval_allows_for_the_largest_weight() -> None:
    """No item was found: the upper end is that of items at the last rank that counts, each with its weight."""
    design = tr.InverseSampling(2, decide=10, beyond=0.4)
    none = design.draw(tr.Ranks.from_ranks([300] * 100, n=1_000), rng=0)
    high = tr.estimate(none, "recall@10").confidence_interval().high
    weight = 1 / float(design.inclusion(9, 999))
    plain = tr.estimate(tr.Ranks.from_ranks([300] * 100, n=1_000), "recall@10").confidence_interval().high
    assert weight > 10
    assert high == pytest.approx(weight * plain, rel=1e-6)


def test_a_function_of_ones_own_may_have_any_of_its_values() -> None:
    """Where it need not be monotone, draws with unequal chances leave everything possible."""
    scores = [0.5, 0.1], [[0.1, 0.9], [0.4, 0.2]]
    ranks = tr.Ranks.from_scores(*scores, n=4, inclusion=[[0.5, 0.9], [0.5, 0.9]])
    # beyond the last candidate there is nothing
    hump = tr.metric(lambda rank, i, n_relevant, n: 1.0 * (rank == 2) - 0.5 * (rank == 3) + 9.0 * (rank > n))
    assert tr.values(ranks, Corrected(hump, Possible())).tolist() == [0.25, 0.25]


def test_ties_are_broken_before_draws_are_counted() -> None:
    drawn = tr.InverseSampling(2).draw(tr.Ranks.from_ranks([3, 8], n=20), rng=0)
    tied = drawn._with(tied=np.array([1, 0]))
    with pytest.raises(tr.InputError, match="needs ranks without ties; use `break_ties` first"):
        tr.values(tied, "rr~unbiased")


def test_unbiased_estimates_reach_from_0_to_all_terms_over_their_chances() -> None:
    exact = tr.Ranks.from_ranks([[1, 9], [4]], n=20)
    ranks = tr.InverseSampling(2).draw(exact, rng=0)
    assert attainable(ranks, tr.metric("precision@2~unbiased")) == (0.0, 1.0)
    assert attainable(ranks[1:], tr.metric("precision@2~unbiased")) == (0.0, 0.5)
