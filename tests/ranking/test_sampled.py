"""Sampled ranks: drawn from exact ones by their law, or by really sampling items; both must look the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import truerank as tr
from tests import shared
from tests.arrays import AnyArray, Ints
from truerank.data.event_files import read_pairs
from truerank.kernels import library
from truerank.sampling.pools import ItemLists, Pool

DATA = shared.DATA / "ml-1m-leave-last-out"


def same_distribution(a: AnyArray, b: AnyArray) -> float:
    """P-value of the chi-square test that two sets of rows come from one distribution."""
    rows, which = np.unique(np.concatenate([a, b]), axis=0, return_inverse=True)
    which = which.ravel()
    counts = np.stack([np.bincount(part, minlength=len(rows)) for part in (which[: len(a)], which[len(a) :])])
    frequent = counts.sum(axis=0) >= 20
    pooled = np.column_stack([counts[:, frequent], counts[:, ~frequent].sum(axis=1)])
    return float(stats.chi2_contingency(pooled[:, pooled.sum(axis=0) > 0]).pvalue)


@pytest.mark.parametrize("replace", [False, True])
def test_drawing_from_ranks_equals_sampling_items(replace: bool) -> None:
    """Three relevant items, two of which tie with each other and with irrelevant ones, share one sample."""
    n, times, m = 14, 40_000, 5
    scores = np.array([9.0, 8, 7, 7, 7, 7, 6, 5, 4, 4, 4, 3, 2, 1])
    relevant = [2, 3, 8]
    exact = tr.rank(scores[None], test=[relevant])
    assert exact.above.tolist() == [2, 2, 6]
    assert exact.tied.tolist() == [2, 2, 2]
    repeated = tr.Ranks.concatenate([exact] * times)
    drawn = tr.UniformSampling(m, replace).draw(repeated, rng=1)
    shown = np.column_stack([drawn.above.reshape(-1, 3), drawn.tied.reshape(-1, 3)])

    rng = np.random.default_rng(2)
    irrelevant = np.setdiff1d(np.arange(n), relevant)
    order = rng.random((times, irrelevant.size)).argsort(axis=1)[:, :m]
    picks = rng.integers(0, irrelevant.size, (times, m)) if replace else order
    sampled = scores[irrelevant[picks]]
    own = scores[relevant]
    above = (sampled[:, :, None] > own).sum(axis=1)
    tied = (sampled[:, :, None] == own).sum(axis=1)
    assert same_distribution(shown, np.column_stack([above, tied])) > 1e-4
    assert same_distribution(shown, np.column_stack([above, np.roll(tied, 1, axis=0)])) < 1e-4, "the test has no power"


@pytest.mark.parametrize("replace", [False, True])
def test_really_sampled_ranks_follow_the_law(replace: bool) -> None:
    n_users, n_items, m = 20_000, 30, 8
    scores = np.tile(np.linspace(1, 0, n_items), (n_users, 1))
    test = [[10]] * n_users
    sampled = tr.rank_sampled(
        scores, train=[[0, 29]] * n_users, test=test, design=tr.UniformSampling(m, replace), rng=5
    )
    assert sampled.design == tr.UniformSampling(m, replace)
    assert sampled.n_catalogue is not None
    assert set(sampled.n_catalogue.tolist()) == {28}
    expected = tr.UniformSampling(m, replace).pmf(np.arange(1, m + 2), rank=10, n=28) * n_users
    seen = np.bincount(sampled.rank, minlength=m + 2)[1:]
    assert seen[expected == 0].sum() == 0
    frequent = expected > 5
    assert (
        float(
            stats.chisquare(seen[frequent], expected[frequent] / expected[frequent].sum() * seen[frequent].sum()).pvalue
        )
        > 1e-4
    )


def test_the_law_sums_to_one_and_its_cdf_adds_it_up() -> None:
    for replace in (False, True):
        design = tr.UniformSampling(20, replace)
        chance = design.pmf(np.arange(1, 22), rank=[[3], [57], [100]], n=100)
        np.testing.assert_allclose(chance.sum(axis=1), 1.0, rtol=1e-13)
        np.testing.assert_allclose(design.cdf(np.arange(1, 22), rank=[[3], [57], [100]], n=100), chance.cumsum(axis=1))


def test_only_the_sample_is_scored() -> None:
    asked: list[tuple[Ints, Ints]] = []

    def score(users: Ints, items: Ints) -> AnyArray:
        asked.append((users, items))
        return np.sin(users * 31.0 + items * 7.0)

    train, test = sp.csr_array((4, 1000), dtype=np.int8), sp.csr_array(np.eye(4, 1000, dtype=np.int8))
    ranks = tr.rank_sampled(score, train=train, test=test, design=10, rng=0)
    users, items = asked[0]
    assert users.size == items.size == 4 * 11
    everything = np.sin(np.arange(4)[:, None] * 31.0 + np.arange(1000) * 7.0)
    assert ranks == tr.rank_sampled(everything, train=train, test=test, design=10, rng=0)


def test_models_given_together_see_the_same_negatives() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 300))
    options: dict[str, Any] = {"test": [[user] for user in range(50)], "design": 20, "rng": 3}
    both = tr.rank_sampled({"a": scores, "b": scores.copy(), "c": -scores}, **options)
    assert both["a"] == both["b"]
    assert both["a"] == tr.rank_sampled(scores, **options)
    np.testing.assert_array_equal(both["a"].above + both["c"].above, 20)


def test_popularity_weighted_sampling_takes_popular_items() -> None:
    counts = np.array([1, 1, 1, 1, 1, 40, 40, 40, 40, 40, 1])
    train = sp.csr_array(np.array([[user < count for count in counts] for user in range(40)], dtype=np.int8)[:, :])
    test = sp.lil_array((41, 11), dtype=np.int8)
    test[40, 10] = 1
    train = sp.vstack([train, sp.csr_array((1, 11), dtype=np.int8)]).tocsr()
    asked: list[Ints] = []

    def score(users: Ints, items: Ints) -> AnyArray:
        asked.append(items)
        return items * 1.0

    design = tr.PopularitySampling(2000, power=0.5, replace=True)
    ranks = tr.rank_sampled(score, train=train, test=test.tocsr(), design=design, rng=1)
    popular = float(np.isin(asked[0], [5, 6, 7, 8, 9]).mean())
    share = 5 * 40**0.5 / (5 * 40**0.5 + 5 * 1)
    assert abs(popular - share) < 5 * (share * (1 - share) / 2000) ** 0.5 + 1 / 2000
    with pytest.raises(tr.InputError, match="needs uniform sampling"):
        tr.values(ranks, "ap~bv(0.1)")
    assert np.isfinite(tr.values(ranks, "ap")).all()


def test_fixed_negatives() -> None:
    scores = np.tile(np.arange(10.0), (3, 1))
    ranks = tr.rank_sampled(scores, test=[[5], [5], [5]], negatives=[[1, 7], [8, 9], [0, 1]])
    assert ranks.rank.tolist() == [2, 3, 1]
    assert ranks.design == tr.UniformSampling(2)
    assert ranks.notes == ("6 negatives, of which 5 distinct items",)
    odd = tr.rank_sampled(scores, test=[[5], [5], [5]], negatives=[[1, 7, 7], [8, 5, 9], [0, 1, 2]])
    assert odd.rank.tolist() == [3, 3, 1]
    assert odd.design == tr.UniformSampling(replace=True)
    assert odd.notes == (
        "8 negatives, of which 6 distinct items",
        "1 negative repeats another of its user and counts as a draw",
        "1 negative is a held-out item of its user and is left out",
    )


def test_every_given_draw_counts() -> None:
    """As in the tools that draw negatives with replacement: a rank counts draws, and 100 given are 100 used."""
    rng = np.random.default_rng(0)
    scores, held = rng.random((20, 50)), rng.integers(50, size=20)
    negatives = [rng.choice(np.delete(np.arange(50), item), size=100) for item in held]
    ranks = tr.rank_sampled(scores, test=[[item] for item in held], negatives=negatives)
    above = [
        sum(own[item] > own[held] for item in drawn) for own, held, drawn in zip(scores, held, negatives, strict=True)
    ]
    assert ranks.above.tolist() == above
    assert ranks.n_candidates.tolist() == [101] * 20
    assert ranks.design == tr.UniformSampling(100, replace=True)


@pytest.mark.skipif(not DATA.is_dir(), reason="the folder ../shared/data is not there")
def test_published_ncf_negatives() -> None:
    negatives = DATA / "ncf_negatives.tsv.gz"
    test = read_pairs(DATA / "test.tsv.gz", (6040, 3706))
    ranks = tr.rank_sampled(lambda users, items: -items.astype(float), test=test, negatives=negatives)
    assert len(ranks) == 6040
    assert "156 negatives are held-out items of their user and are left out" in ranks.notes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"design": 0}, "`m` must be a whole number from 1, got 0"),
        ({"design": 10}, r"`m` must be at most the number of irrelevant candidates \(9 for some instance\)"),
        ({"test": None}, "give the held-out items as `test`, or a `split`"),
        (
            {"design": tr.PopularitySampling(3)},
            "popularity-weighted sampling needs training interactions; give `train`",
        ),
        ({"negatives": []}, "`negatives` must have a row for each user"),
        ({"negatives": [[3]], "design": 5}, "give either `negatives` or `design`, not both"),
        ({"negatives": [[3]], "candidates": [[3, 4]]}, "give either `negatives` or `candidates`, not both"),
        ({"negatives": [[3, 10]]}, r"`negatives` must hold items 0\.\.9, got 3\.\.10"),
    ],
)
def test_bad_sampling(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.rank_sampled(np.ones((1, 10)), **({"test": [[5]]} | options))


@pytest.mark.parametrize("text", ["(0,1)\tx\n", "0 1 2\n", "0\t1\n0\t2\n"])
def test_bad_files_of_negatives(tmp_path: Path, text: str) -> None:
    (tmp_path / "negatives").write_text(text)
    with pytest.raises(tr.InputError, match=r"negatives', line \d: "):
        tr.rank_sampled(np.ones((1, 10)), test=[[5]], negatives=tmp_path / "negatives")


@pytest.mark.parametrize(
    "design", [tr.UniformSampling(300), tr.UniformSampling(20, replace=True), tr.InverseSampling(2, most=400)], ids=str
)
def test_threads_and_blocks_change_nothing(design: tr.SamplingDesign, monkeypatch: pytest.MonkeyPatch) -> None:
    from truerank.ranking import among_samples

    rng = np.random.default_rng(0)
    scores = tr.Factors(rng.normal(size=(6_000, 3)), rng.normal(size=(1_500, 3)))
    test = [rng.choice(1_500, 1 + user % 2, replace=False).tolist() for user in range(6_000)]
    one = tr.rank_sampled(scores, test=test, design=design, rng=5, threads=1)
    monkeypatch.setattr(among_samples, "_PER_THREAD", 10_000)
    assert tr.rank_sampled(scores, test=test, design=design, rng=5, threads=3, progress=True) == one
    exact = tr.rank(scores, test=test)
    assert one.n_catalogue is not None
    assert (one.above <= exact.above).all() or getattr(design, "replace", False)
    expected = (exact.above / exact.item_irrelevant).mean()
    if isinstance(design, tr.UniformSampling):
        assert (one.above / one.item_draws).mean() == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("way", ["compiled", "numpy"])
def test_each_candidate_is_sampled_equally_often(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users who have seen few items are drawn for by rejection, others from a list of what is left.

    The slow loops, which draw the same as the fast ones, draw less often.
    """
    if way == "numpy":
        monkeypatch.setattr(library, "load", lambda: None)
    excluded = [np.array([3, 4]), np.arange(2, 19), np.array([0, 19]), np.arange(0, 20, 2)]
    counts, times = np.array([5, 2, 18, 1]), 3_000 if library.load() else 500
    pool = Pool(20, excluded * times)
    users = np.arange(len(pool))
    taken = ItemLists(np.cumsum([0, *(users % 4 == 0)]), np.full(times, 7))
    drawn = pool.distinct(users, np.tile(counts, times), np.random.default_rng(1), taken)
    owners, items = np.repeat(users, np.diff(drawn.indptr)), drawn.items
    assert (np.diff(owners * 20 + items) > 0).all(), "none twice"
    for kind, (own, count) in enumerate(zip(excluded, counts.tolist(), strict=True)):
        seen = np.bincount(items[owners % 4 == kind], minlength=20)
        left = np.setdiff1d(np.arange(20), [*own, 7] if kind == 0 else own)
        assert seen.sum() == count * times
        assert set(np.flatnonzero(seen)) <= set(left.tolist())
        if count < left.size:
            spread = (count / left.size) * (1 - count / left.size) * times
            deviations = (seen[left] - count * times / left.size) / spread**0.5
            assert np.abs(deviations).max() < 5


@pytest.mark.parametrize("most", [12, 60])
@pytest.mark.parametrize("n_items", [90, 128, 4_096, 4_097, 300_000])
def test_the_compiled_loop_draws_what_numpy_draws(n_items: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n_items)
    excluded = [np.sort(rng.choice(n_items, size, replace=False)) for size in rng.integers(0, 15, 60)]
    users, counts, taken = np.arange(0, 60, 2), rng.integers(0, most, 30), [rng.choice(n_items, 6) for _ in range(30)]
    ways = []
    for load in (library.load, lambda: None):
        monkeypatch.setattr(library, "load", load)
        given = users, counts, np.random.default_rng(1), ItemLists.of(taken)
        ways.append(Pool(n_items, excluded).distinct(*given))
    assert np.diff(ways[0].indptr).tolist() == counts.tolist()
    np.testing.assert_array_equal(ways[0].indptr, ways[1].indptr)
    np.testing.assert_array_equal(ways[0].items, ways[1].items)


def test_what_may_be_spent_in_total() -> None:
    rng = np.random.default_rng(0)
    scores, test = rng.random((50, 400)), [[user] for user in range(50)]
    scores[np.arange(50), np.arange(50)] = rng.uniform(0.9, 1.0, 50)
    free = tr.rank_sampled(scores, test=test, design=tr.InverseSampling(2), rng=1)
    capped = tr.rank_sampled(scores, test=test, design=tr.InverseSampling(2), rng=1, most_scores=1_500)
    assert capped.n_scored.sum() <= 1_500 < free.n_scored.sum()
    assert capped.n_scored.sum() > 1_400
    cut = capped.above < 2
    assert cut.any()
    assert np.unique(capped.item_draws[cut]).size == 1, "all end at the same number"
    table = tr.evaluate(capped, "ap")
    assert table.metrics == ("ap~smooth",)
    assert any("the cap of inverse ended the draws for" in note for note in table.notes)
    assert tr.rank_sampled(scores, test=test, design=tr.InverseSampling(2), rng=1, most_scores=10**6) == free
    with pytest.raises(tr.InputError, match=r"uniform\(100\) needs 5050 scores, but `most_scores` is 5000"):
        tr.rank_sampled(scores, test=test, design=100, most_scores=5_000)
    with pytest.raises(tr.InputError, match=r"head-first@10 can't be ended by `most_scores`"):
        tr.rank_sampled(scores, test=test, design=tr.HeadFirst(10, scores), most_scores=5_000)
    with pytest.raises(tr.InputError, match="`most_scores` must be a whole number from 1, got 0"):
        tr.rank_sampled(scores, test=test, most_scores=0)
