"""Median and geometric mean rank and z-scores: metrics of all instances together, which are no means of theirs."""

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import truerank as tr

NAMES = ["median-rank", "geometric-mean-rank", "z(mean-rank)", "z(rr)", "z(hr)@3"]


def plain(n: int = 61, seed: int = 0) -> tr.Ranks:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 40, n)
    return tr.Ranks.from_ranks(rng.integers(1, sizes + 1), n=sizes)


def tied() -> tr.Ranks:
    """One relevant item per instance, or several, with ties."""
    return tr.Ranks(above=[0, 3, 3, 8, 1, 1, 5], tied=[2, 1, 1, 0, 0, 0, 4], n_candidates=20, indptr=[0, 1, 4, 5, 6, 7])


def spread(ranks: tr.Ranks) -> tuple[list[int], list[float]]:
    """Return the ranks of all orders of tied items, each with its probability times the weight of the item."""
    found: list[int] = []
    weights: list[float] = []
    for row in range(len(ranks)):
        one = ranks[row]
        blocks = [list(group) for _, group in itertools.groupby(zip(one.above, one.tied, strict=True))]
        before = 0
        for block in blocks:
            above, ties = block[0]
            chance = 1 / (int(ties) + len(block)) / one.above.size
            for rank in range(int(above) + before + 1, int(above) + before + int(ties) + len(block) + 1):
                found.append(rank)
                weights.append(chance * len(block))
            before += len(block)
    return found, weights


def mean(ranks: tr.Ranks, metric: str, **options: Any) -> float:
    return tr.estimate(ranks, metric, **options).mean


@pytest.mark.parametrize("n", [1, 2, 60, 61])
def test_without_ties(n: int) -> None:
    ranks = plain(n)
    assert mean(ranks, "median-rank") == np.median(ranks.rank)
    assert mean(ranks, "geometric-mean-rank") == pytest.approx(np.prod(ranks.rank ** (1 / n)), rel=1e-12)


def random_ties(seed: int) -> tr.Ranks:
    """Some instances with up to four relevant items, whose scores tie with each other and with irrelevant ones."""
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(12)[: rng.integers(1, 5)].tolist() for _ in range(rng.integers(1, 6))]
    return tr.rank(rng.integers(0, 3, (len(lists), 12)) / 2.0, test=lists)


@pytest.mark.parametrize("ranks", [tied(), *map(random_ties, range(20))], ids=str)
def test_ties_are_spread_over_their_ranks(ranks: tr.Ranks) -> None:
    found, weights = spread(ranks)
    order = np.argsort(found, kind="stable")
    shares = np.cumsum(np.array(weights)[order]) / len(ranks)
    ends = [np.array(found)[order][np.searchsorted(shares, 0.5 + slack)] for slack in (-1e-9, 1e-9)]
    assert mean(ranks, "median-rank") == np.mean(ends)
    expected = np.exp(np.log(found) @ np.array(weights) / len(ranks))
    assert mean(ranks, "geometric-mean-rank") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("how", ["optimistic", "pessimistic"])
def test_other_tie_policies(how: Any) -> None:
    one = tr.Ranks(above=[0, 3, 5], tied=[2, 1, 4], n_candidates=20)
    broken = one.above + 1 + (one.tied if how == "pessimistic" else 0)
    assert mean(one, "median-rank", ties=how) == np.median(broken)


@pytest.mark.parametrize("tied", [[1, 2], [1, 2, 1], [4, 0, 9, 1], [0, 0]])
def test_the_median_as_pykeen_computes_it_is_that_of_mean_ranks(tied: list[int]) -> None:
    ranks = tr.Ranks(above=[0] * len(tied), tied=tied, n_candidates=20)
    found = tr.evaluate(ranks, "median-rank", convention="pykeen")["median-rank"]
    assert found.mean == np.median(1 + np.array(tied) / 2)


def test_z_scores_by_enumeration() -> None:
    """The moments of the mean over all combinations of ranks."""
    ranks = tr.Ranks.from_ranks([1, 3, 2], n=[3, 5, 4])
    combinations = np.array(list(itertools.product(*(range(1, n + 1) for n in (3, 5, 4)))))
    for name, values in {
        "z(mean-rank)": -combinations,
        "z(rr)": 1 / combinations,
        "z(hr)@2": combinations <= 2,
    }.items():
        means = values.mean(axis=1)
        own = means[(combinations == ranks.rank).all(axis=1)].item()
        assert mean(ranks, name) == pytest.approx((own - means.mean()) / means.std(), rel=1e-12)


def test_intervals_cover() -> None:
    """In 400 samples of 60 ranks, intervals of 90 % cover the median and the geometric mean of all ranks."""
    rng = np.random.default_rng(7)
    everyone = np.ceil(np.exp(rng.normal(2.5, 1.0, 100_001))).astype(int)
    truth = {"median-rank": np.median(everyone), "geometric-mean-rank": np.exp(np.log(everyone).mean())}
    hits = dict.fromkeys(truth, 0)
    for _ in range(400):
        ranks = tr.Ranks.from_ranks(rng.choice(everyone, 60), n=int(everyone.max()))
        for name, value in truth.items():
            low, high = tr.estimate(ranks, name).confidence_interval(0.9)
            hits[name] += low <= value <= high
    error = np.sqrt(0.9 * 0.1 / 400)
    assert all(share / 400 > 0.9 - 5 * error for share in hits.values()), hits
    assert hits["geometric-mean-rank"] / 400 < 0.9 + 5 * error


def test_instances_of_one_user_widen_the_interval() -> None:
    ranks = plain()
    twice = tr.Ranks.concatenate([ranks, ranks])
    for name in NAMES[:2]:
        one = tr.estimate(tr.Ranks.from_ranks(ranks.rank, n=ranks.n_candidates, ids=np.arange(61)), name)
        both = tr.estimate(tr.Ranks.from_ranks(twice.rank, n=twice.n_candidates, ids=np.tile(np.arange(61), 2)), name)
        assert (both.mean, both.n, both.n_users) == (one.mean, 122, 61)
        assert both.confidence_interval() == pytest.approx(one.confidence_interval())


def test_in_tables() -> None:
    ranks, other = plain(), plain(seed=1)
    groups = dict(enumerate(np.where(np.arange(61) < 20, "first", "others").tolist()))
    named = tr.Ranks.from_ranks(ranks.rank, n=ranks.n_candidates, ids=np.arange(61))
    table = tr.evaluate(named, [*NAMES, "rr"], by=groups)
    for name in NAMES:
        assert table[name, "first"].mean == mean(ranks[:20], name)
        assert table[name, "first"].confidence_interval() == tr.estimate(ranks[:20], name).confidence_interval()
    both = tr.evaluate({"A": ranks, "B": other}, [*NAMES, "rr"])
    assert "**" not in both.to_markdown()
    assert pickle.loads(pickle.dumps(both)).rows() == both.rows()
    winner = tr.evaluate({"A": tr.Ranks.from_ranks([1] * 61, n=50), "B": other}, ["rr", "median-rank"])
    assert winner.to_markdown().count("**1.0000") == 1
    assert tr.evaluate({"A": ranks, "B": other}, "gmr").to_markdown().count("**") == 0


@pytest.mark.parametrize("name", NAMES)
def test_instances_without_relevant_items_change_nothing(name: str) -> None:
    some, others = tr.Ranks.from_ranks([[2], [], [4]], n=[5, 9, 7]), tr.Ranks.from_ranks([[2], [4]], n=[5, 7])
    assert mean(some, name) == mean(others, name)


def test_no_relevant_items() -> None:
    ranks = tr.Ranks.from_ranks([[], []], n=5)
    assert all(np.isnan(mean(ranks, name)) for name in NAMES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tr.values(plain(), "median-rank"), "median-rank is a metric of all instances together"),
        (lambda: tr.compare({"A": plain(), "B": plain()}, "z(rr)"), "all instances together"),
        (
            lambda: tr.estimate(tr.Ranks.from_sampled([1], m=5, n=9), "z(rr)"),
            "needs exact ranks, but these are sampled",
        ),
        (lambda: mean(plain().cut(3, above=plain().above, tied=plain().tied), "gmr"), "these ranks are cut at depth 3"),
        (lambda: mean(tied(), "z(rr)"), r"z\(rr\) needs one relevant item per instance, but instance 1 has several"),
        (lambda: tr.estimate(plain(), "gmr") + tr.estimate(plain(), "gmr"), "it can't be added: join the ranks"),
        (lambda: tr.metric("z(hr)"), r"z is written 'z\(mean-rank\)'"),
        (lambda: tr.metric("z(ap)"), r"z is written 'z\(metric\)@k', got 'z\(ap\)'"),
        (lambda: tr.estimate(plain(), "gmr~bv(0.1)"), "gmr~bv|all instances together"),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        call()
