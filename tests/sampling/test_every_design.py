"""Every sampling design: what it draws from ranks, what it finds with scores, and how it is stored."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import truerank as tr
from tests.arrays import Floats, Ints
from truerank.core.samples import DESIGNS
from truerank.estimators.corrected import has_unbiased_form
from truerank.sampling.designs import StoppedSampling, as_design
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC, draw_until
from truerank.sampling.pools import FixedOrder, Pool, RandomOrder, ScoreOrder

DRAWN = [
    tr.UniformSampling(5),
    tr.UniformSampling(5, replace=True),
    tr.InverseSampling(1),
    tr.InverseSampling(2),
    tr.InverseSampling(3, most=4),
    tr.InverseSampling(most=4),
    tr.InverseSampling(1, whole=True),
    tr.InverseSampling(1, decide=4, beyond=0.5),
]
"""Designs that draw from exact ranks."""

EXACT = tr.Ranks.from_ranks([[2, 5, 9], [4], [10, 11]], n=[12, 10, 11], ids=["a", "b", "c"])


def looked_at(
    order: tuple[int, ...], above: int, hits: int, most: int | None, ends: list[int] | None = None
) -> tuple[int, int]:
    """Draw candidates in this order, the best being 0: how many are drawn until enough stand above, and how many do."""
    limit = len(order) if most is None else min(most, len(order))
    drawn = found = 0
    while drawn < limit and (found < hits or (ends is not None and drawn not in ends)):
        found += order[drawn] < above
        drawn += 1
    return drawn, found


@pytest.mark.parametrize(
    ("n", "above", "hits", "most", "ends"),
    [
        (5, [1, 3], 2, None, None),
        (5, [2, 3, 5], 2, 3, None),
        (5, [0, 2], 1, None, None),
        (6, [3], 2, 4, None),
        (4, [0, 4], 3, None, None),
        (6, [2, 4], 1, None, [2, 4, 6]),
        (6, [0, 2, 5], 2, 5, [3, 4, 6]),
        (5, [1, 2, 4], 1, None, [1, 4, 7]),
    ],
)
def test_inverse_sampling_against_all_orders(
    n: int, above: list[int], hits: int, most: int | None, ends: list[int] | None
) -> None:
    orders = list(itertools.permutations(range(n)))
    expected = Counter(tuple(looked_at(order, each, hits, most, ends) for each in above) for order in orders)
    times, size = 40_000, len(above)
    counts = np.tile(above, times), np.arange(times + 1) * size, np.full(times, n)
    stops = None if ends is None else np.array(ends)
    drawn, seen = draw_until(*counts, hits, most, np.random.default_rng(1), stops)
    rows = np.stack([drawn, seen], axis=1).reshape(times, size, 2).tolist()
    found = Counter(tuple((t, j) for t, j in row) for row in rows)
    assert set(found) <= set(expected)
    keys = sorted(expected)
    shares = np.array([expected[key] for key in keys]) / len(orders)
    assert len(keys) == 1 or stats.chisquare([found[key] for key in keys], shares * times).pvalue > 1e-4


@given(
    st.sampled_from(DRAWN),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), st.integers(5, 9)), min_size=1, max_size=5),
    st.integers(0, 99),
)
def test_draws_are_among_the_candidates(design: tr.SamplingDesign, some: list[tuple[int, int, int]], seed: int) -> None:
    above, tied = [above for above, _, _ in some], [tied for _, tied, _ in some]
    exact = tr.Ranks(above=above, tied=tied, n_candidates=[1 + sum(one) for one in some])
    drawn = design.draw(exact, rng=seed)
    assert drawn == design.draw(exact, rng=seed)
    assert (drawn.above + drawn.tied <= drawn.item_draws).all()
    not_below = exact.above + exact.tied
    assert not (drawn.above + drawn.tied)[not_below == 0].any()
    if not getattr(design, "replace", False):
        assert (drawn.item_draws < exact.n_candidates).all()
        assert (drawn.above + drawn.tied <= not_below).all()
        assert isinstance(design, tr.InverseSampling) or (drawn.above <= exact.above).all(), "it breaks ties"


@pytest.mark.parametrize("design", DRAWN, ids=str)
def test_scoring_items_gives_what_is_drawn_from_ranks(design: tr.SamplingDesign) -> None:
    """Three relevant items, of which two tie with each other and with irrelevant ones, share their draws."""
    scores = np.array([9.0, 8, 7, 7, 7, 7, 6, 5, 4, 4, 4, 3, 2, 1])
    assert likeness_of_drawn_and_scored(design, scores, [2, 3, 8]) > 1e-4


def likeness_of_drawn_and_scored(design: tr.SamplingDesign, scores: Floats, relevant: list[int]) -> float:
    """Return the p-value of the hypothesis that ranks drawn from exact ones and those from scores have one law."""
    times, size = 8_000, len(relevant)
    exact = tr.rank(scores[None], test=[relevant])
    drawn = design.draw(tr.Ranks.concatenate([exact] * times), rng=1)
    scored = tr.rank_sampled(np.tile(scores, (times, 1)), test=[relevant] * times, design=design, rng=2)
    tables = [
        np.column_stack([column.reshape(-1, size) for column in (ranks.above, ranks.tied, ranks.item_draws)])
        for ranks in (drawn, scored)
    ]
    rows, which = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
    counts = np.stack([np.bincount(part, minlength=len(rows)) for part in np.split(which.ravel(), 2)])
    frequent = counts.sum(axis=0) >= 20
    pooled = np.column_stack([counts[:, frequent], counts[:, ~frequent].sum(axis=1)])
    return float(stats.chi2_contingency(pooled[:, pooled.sum(axis=0) > 0]).pvalue)


def test_draws_can_go_on_to_the_end_of_their_batch(tmp_path: Path) -> None:
    scores, relevant = -np.arange(55.0), [2, 9]
    design, plain = tr.InverseSampling(1, whole=True), tr.InverseSampling(1)
    assert likeness_of_drawn_and_scored(design, scores, relevant) > 1e-4
    many, test = np.tile(scores, (100, 1)), [relevant] * 100
    long, short = (tr.rank_sampled(many, test=test, design=each, rng=3) for each in (design, plain))
    assert long.n_scored.tolist() == short.n_scored.tolist(), "the scores are those that are asked for anyway"
    assert {16, 32} < set(long.item_draws.tolist()) <= {16, 32, 48, 53}
    assert (long.above >= short.above).all()
    assert long.above.reshape(-1, 2)[:, 0].max() > long.above.reshape(-1, 2)[:, 1].min(), "more draws may count more"
    long.save(tmp_path / "ranks.parquet")
    assert tr.Ranks.load(tmp_path / "ranks.parquet") == long
    assert tr.evaluate(long, "ap").metrics == ("ap~smooth",)
    with pytest.raises(tr.InputError, match=r"no useful unbiased estimate under inverse\(1, whole\); use ap~smooth"):
        tr.values(long, "ap~unbiased")


@pytest.mark.parametrize("kind", ["npz", "parquet"])
@pytest.mark.parametrize("design", DRAWN, ids=str)
def test_round_trips(design: tr.SamplingDesign, kind: str, tmp_path: Path) -> None:
    sampled = design.draw(EXACT, rng=3)
    sampled.save(tmp_path / f"ranks.{kind}")
    again = tr.Ranks.load(tmp_path / f"ranks.{kind}")
    assert again == sampled
    assert again.design == design == DESIGNS.read(str(design))
    assert tr.Ranks.from_arrow(again.to_arrow().replace_schema_metadata(sampled_metadata(design))) == sampled
    parts = [sampled[[place]] for place in range(3)]
    assert tr.Ranks.concatenate(parts) == sampled
    assert [part.item_draws.tolist() for part in parts] == [
        sampled.item_draws[sampled.instance == place].tolist() for place in range(3)
    ]


def sampled_metadata(design: tr.SamplingDesign) -> dict[str, str]:
    return {"truerank": f'{{"depth": null, "notes": [], "design": "{design}"}}'}


def test_draws_per_item_are_checked() -> None:
    told: dict[str, Any] = {"above": [1, 2], "n_candidates": 8, "indptr": [0, 2]}
    with pytest.raises(tr.InputError, match=r"own number of draws, but `drawn` is missing"):
        tr.Ranks(**told, sample=tr.Sample("inverse(2)", 20))
    with pytest.raises(tr.InputError, match=r"`drawn` must lie in 2..6, got 7 at position 1"):
        tr.Ranks(**told, sample=tr.Sample("inverse(2)", 20, [6, 7]))
    with pytest.raises(tr.InputError, match=r"`above` must be at most 1 under inverse\(1\), got 2 at position 1"):
        tr.Ranks(**told, sample=tr.Sample("inverse(1)", 20, [6, 6]))
    with pytest.raises(tr.InputError, match=r"share their sample; leave out `drawn`"):
        tr.Ranks(**told, sample=tr.Sample("uniform(6)", 20, [6, 6]))
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(tr.InputError, match="`hits` must be a whole number from 1"):
            tr.InverseSampling(wrong)  # type: ignore[arg-type]


def test_data_from_elsewhere_have_any_number_of_draws() -> None:
    """A mixture of designs has the likelihoods of its parts, so the estimates of a law are the same."""
    exact = tr.Ranks.from_ranks([[2, 90], [15], [400]] * 100, n=500)
    inverse = tr.InverseSampling(2).draw(exact, rng=1)
    same = tr.Ranks.from_draws(inverse.above, inverse.item_draws, n=500, indptr=inverse.indptr)
    for metric in ("ndcg@10~smooth", "ap~monotone"):
        np.testing.assert_allclose(tr.values(same, metric), tr.values(inverse, metric), rtol=1e-12)
    fixed = tr.UniformSampling(40).draw(exact, rng=1)
    mixed = tr.Ranks.concatenate([same, tr.Ranks.from_draws(fixed.above, fixed.item_draws, n=500, indptr=fixed.indptr)])
    assert mixed.item_draws.tolist() == [*inverse.item_draws.tolist(), *fixed.item_draws.tolist()]
    assert tr.evaluate(mixed, "ap").metrics == ("ap~smooth",)
    assert DESIGNS.read("stopped") == mixed.design
    with pytest.raises(tr.InputError, match=r"`above` must lie in 0\.\.2, got 3 at position 0"):
        tr.Ranks.from_draws([3], [2], n=10)
    assert tr.Ranks.from_draws([2], [9], n=10).drawn is not None
    with pytest.raises(tr.InputError, match=r"draws must be at most the number of irrelevant candidates \(9 .* got 10"):
        tr.Ranks.from_draws([2], [10], n=10)
    with pytest.raises(tr.InputError, match=r"draws must be at most the number of irrelevant candidates \(9 .* got 10"):
        tr.Ranks(above=[2], n_candidates=11, sample=tr.Sample("inverse(2)", 10, [10]))
    with pytest.raises(tr.InputError, match="needs inverse sampling, but these ranks were sampled by stopped"):
        tr.values(mixed, "ap~unbiased")
    with pytest.raises(tr.InputError, match="stopped describes data from elsewhere"):
        tr.rank_sampled(np.eye(3), test=[[0], [1], [2]], design=str(mixed.design))


def test_each_scorer_sees_the_same_order_and_only_pairs_are_asked() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((40, 300))
    asked: list[tuple[Ints, Ints]] = []

    def slow(users: Ints, items: Ints) -> Floats:
        asked.append((users, items))
        return scores[users, items]

    test = [[user] for user in range(40)]
    design = tr.InverseSampling(2, most=100)
    both = tr.rank_sampled({"slow": slow, "matrix": scores}, test=test, design=design, rng=1)
    assert both["slow"] == both["matrix"]
    pairs = np.concatenate([np.stack(pair) for pair in asked], axis=1)
    assert np.unique(pairs, axis=1).shape == pairs.shape, "no pair is scored twice"
    assert np.bincount(pairs[0]).tolist() == both["slow"].n_scored.tolist()
    assert len(asked) < 15, "users are asked for together"
    assert both["slow"].drawn is not None
    assert both["slow"].n_scored.mean() < 1.3 * both["slow"].drawn.mean() + 17


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("proxy", ["popularity", "close", "constant"])
def test_head_first_is_exact_down_to_its_depth(k: int, proxy: str) -> None:
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 30, (80, 90)).astype(float)
    test = [rng.choice(90, 1 + user % 4, replace=False).tolist() for user in range(80)]
    train = [np.setdiff1d(rng.choice(90, 9), own).tolist() for own in test]
    proxies = {"popularity": None, "close": scores + rng.normal(size=scores.shape), "constant": np.ones((80, 90))}
    ranks = tr.rank_sampled(scores, train=train, test=test, design=tr.HeadFirst(k, proxies[proxy]), rng=1)
    exact = tr.rank(scores, train=train, test=test)
    assert exact.has_ties
    for metric in (f"ndcg@{k}", f"recall@{k}", f"ap@{k}", f"rr@{k}", "accuracy"):
        np.testing.assert_allclose(tr.values(ranks, metric), tr.values(exact, metric), atol=1e-14)
    with pytest.raises(tr.InputError, match=f"depth {k}"):
        tr.values(ranks, f"ndcg@{k + 1}")
    assert ranks.n_scored.sum() < exact.n_candidates.sum()
    assert not any("sampled" in note for note in tr.evaluate(ranks, f"ndcg@{k}").notes), "they are exact"
    assert tr.Ranks.concatenate([ranks[:7], ranks[7:]]) == ranks


def test_head_first_survives_files(tmp_path: Path) -> None:
    scores = np.random.default_rng(1).random((5, 50))
    ranks = tr.rank_sampled(scores, test=[[0]] * 5, design=tr.HeadFirst(3, scores), rng=1)
    for name in ("a.npz", "a.parquet"):
        ranks.save(tmp_path / name)
        assert tr.read_ranks(tmp_path / name) == ranks
    assert DESIGNS.read("head-first@3") == tr.HeadFirst(3)
    with pytest.raises(tr.InputError, match="give `train`, or a `proxy`"):
        tr.rank_sampled(scores, test=[[0]] * 5, design=tr.HeadFirst(3))


def test_head_first_drawn_from_ranks() -> None:
    """Without a proxy the order is random: metrics are exact, and cost what the law of the k-th draw above says."""
    exact = tr.Ranks.from_ranks([[1, 4], [30], [2], [59]] * 500, n=60)
    ranks = tr.HeadFirst(3).draw(exact, rng=1)
    np.testing.assert_allclose(tr.values(ranks, "ndcg@3"), tr.values(exact, "ndcg@3"), atol=1e-14)
    assert ranks.depth == 3
    # the 3rd of the candidates above comes after 3 (N + 1) / (above + 1) draws on average; all are drawn if there are 2
    expected = np.array([58 + 2, 3 * 60 / 30 + 1, 59 + 1, 3 * 60 / 59 + 1])
    spent = ranks.n_scored.reshape(-1, 4)
    assert (spent[:, [0, 2]] == expected[[0, 2]]).all()
    for column in (1, 3):
        error = spent[:, column].std() / 500**0.5
        assert abs(spent[:, column].mean() - expected[column]) < 5 * error


def test_orders_hold_every_candidate_once() -> None:
    rng = np.random.default_rng(2)
    pool = Pool(30, [np.array([3, 4, 29]), np.array([], dtype=np.int64)])
    table = rng.integers(0, 5, (2, 30)).astype(float)
    items = rng.permutation(30)
    for order in (RandomOrder(pool, rng), ScoreOrder(pool, tr.ScoreMatrix(table), rng), FixedOrder(pool, items)):
        for place in range(2):
            at = np.array([place])
            parts = [order.part(at, start, start + 7)[0] for start in range(0, 42, 7)]
            assert sorted(np.concatenate(parts).tolist()) == pool.candidates(place).tolist()
            if isinstance(order, ScoreOrder):
                assert (np.diff(table[place, np.concatenate(parts)]) <= 0).all()
            if isinstance(order, FixedOrder):
                assert np.concatenate(parts).tolist() == [item for item in items if item in pool.candidates(place)]


def test_likelihoods_are_proportional_to_the_laws() -> None:
    count = np.arange(21)
    for replace, likelihood in ((False, HYPERGEOMETRIC.log_likelihood), (True, BINOMIAL.log_likelihood)):
        design = tr.UniformSampling(6, replace)
        chance = design.law().pmf(2, count, 6, 20)
        likely = np.exp(likelihood(2, 6, count, 20))
        np.testing.assert_allclose(likely / likely.sum(), chance / chance.sum(), rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize(
    ("text", "design"),
    [
        ("uniform(100, replace=true)", tr.UniformSampling(100, replace=True)),
        ("uniform(m=100, replace=false)", tr.UniformSampling(100)),
        ("popularity(10, power=0.5)", tr.PopularitySampling(10, power=0.5)),
        ("inverse(most=50)", tr.InverseSampling(most=50)),
        ("inverse(whole=true, hits=3)", tr.InverseSampling(3, whole=True)),
    ],
)
def test_text_forms_take_keywords(text: str, design: tr.SamplingDesign) -> None:
    assert tr.Sample(text, 200).design == design
    assert tr.Sample(str(design), 200).design == design


def test_what_a_design_refuses() -> None:
    ranks = tr.Ranks.from_ranks([1, 2], n=9)
    with pytest.raises(tr.InputError, match=r"`rank` must lie in i\.\.n - n_relevant \+ i for the i-th relevant item"):
        tr.UniformSampling(3).pmf(1, rank=10, n=9)
    with pytest.raises(
        tr.InputError, match="`power` must be a finite number, got inf; popularity is counted in `train`"
    ):
        tr.PopularitySampling(3, power=np.inf)
    with pytest.raises(tr.InputError, match=r"got an array of shape \(2,\); popularity is counted"):
        tr.PopularitySampling(3, power=np.array([1.0, np.nan]))  # type: ignore[arg-type]
    with pytest.raises(tr.InputError, match="can't be drawn without scores, because they decide when it stops"):
        tr.InverseSampling(2).sample(Pool(9, [np.zeros(0, dtype=np.int64)]), np.random.default_rng(0))
    with pytest.raises(tr.InputError, match="describes data from elsewhere; sample by UniformSampling"):
        StoppedSampling().size  # noqa: B018
    with pytest.raises(tr.InputError, match="describes data from elsewhere; sample by UniformSampling"):
        StoppedSampling().sample(Pool(9, [np.zeros(0, dtype=np.int64)]), np.random.default_rng(0))
    with pytest.raises(
        tr.InputError, match="only exact ranks can be sampled, but these ranks are already sampled or cut"
    ):
        tr.UniformSampling(3).draw(tr.UniformSampling(3).draw(ranks, rng=0), rng=0)


def test_a_number_is_a_uniform_sample() -> None:
    assert as_design(7) == tr.UniformSampling(7)
    assert tr.UniformSampling(7).variants() == (tr.UniformSampling(7),)
    with pytest.raises(tr.InputError, match="`design` must be a sampling design, or a text such as"):
        as_design(True)


@pytest.mark.parametrize("design", [tr.UniformSampling(5), tr.UniformSampling(5, replace=True)], ids=str)
def test_uniform_samples_decide_no_place(design: tr.SamplingDesign) -> None:
    ranks = design.draw(tr.Ranks.from_ranks([1, 2, 9], n=9), rng=0)
    assert not any(has_unbiased_form(part.term, ranks) for part in tr.metric("recall@1").terms(ranks))
    assert not tr.metric("recall@1").unbiased(ranks)


def test_orders_can_be_taken_one_by_one() -> None:
    rng = np.random.default_rng(3)
    pool, table = Pool(6, [np.array([5]), np.array([0, 1, 2, 3, 4])]), rng.permutation(12).reshape(2, 6).astype(float)
    places = np.array([0, 1])
    for order in (ScoreOrder(pool, tr.ScoreMatrix(table), rng), RandomOrder(pool, rng)):
        taken = [order.part(places, start, start + 1) for start in range(6)]
        for place in places.tolist():
            items = [item for step in taken for item in step[place].tolist()]
            best = sorted(pool.candidates(place).tolist(), key=lambda item: -table[place, item])
            assert (items if isinstance(order, ScoreOrder) else sorted(items, key=best.index)) == best
