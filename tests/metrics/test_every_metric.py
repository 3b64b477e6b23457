"""One suite over all metrics: definitions, ties, text forms, edge cases, invariances."""

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truerank as tr
from tests import reference
from tests.arrays import Floats, Ints
from tests.instances import Instance, instances, ranks_of, tied_instances, untied_instances
from tests.sampling.terms import plain
from truerank.evaluation.per_instance import Ties
from truerank.metrics.definitions import BUILT_IN, GRADED

every_metric = pytest.mark.parametrize("text", reference.METRICS)


def test_the_suite_covers_every_built_in_metric() -> None:
    covered = {type(tr.metric(text)) for text in reference.METRICS}
    assert covered == {*BUILT_IN, *GRADED}


@every_metric
def test_definition(text: str) -> None:
    rankings, ranks = untied_instances()
    expected = [reference.METRICS[text](ranking) if any(ranking) else math.nan for ranking in rankings]
    np.testing.assert_allclose(tr.values(ranks, text), expected, rtol=1e-12, atol=1e-15)


@every_metric
def test_what_is_said_to_be_separable_is(text: str) -> None:
    """The term is that of the only relevant item, times a factor: the same at every rank that the i-th may have."""
    ranks = tr.Ranks.from_ranks([[1, 2, 3], [4], [5, 6]], n=30, grades=[[1, 2, 3], [1], [2, 1]])
    for part in tr.metric(text).terms(ranks):
        if part.term.separable:
            rank = np.arange(4, 30)
            alone = part.term.term(rank, *np.ones((3, rank.size), dtype=np.int64))
            for i, n_relevant, n in [(1, 1, 30), (1, 3, 30), (3, 3, 60), (4, 11, 30)]:
                own = part.term.term(rank, *(np.full_like(rank, number) for number in (i, n_relevant, n)))
                scale = own[0] / alone[0] if alone[0] else 0.0
                np.testing.assert_allclose(own, scale * alone, rtol=1e-13)


@every_metric
def test_expected_is_the_mean_over_all_orders_of_ties(text: str) -> None:
    orders, ranks = tied_instances()
    expected = []
    for rankings in orders:
        outcomes = [reference.METRICS[text](ranking) for ranking in rankings] if any(rankings[0]) else [math.nan]
        expected.append(math.fsum(outcomes) / len(outcomes))
    np.testing.assert_allclose(tr.values(ranks, text), expected, rtol=1e-12, atol=1e-15)


@given(st.sampled_from(sorted(reference.METRICS)), st.lists(instances(), min_size=1, max_size=4))
def test_values_do_not_depend_on_other_instances(text: str, some: list[Instance]) -> None:
    expected = []
    for rankings in (list(reference.orders(*instance)) for instance in some):
        outcomes = [reference.METRICS[text](ranking) if any(ranking) else math.nan for ranking in rankings]
        expected.append(math.fsum(outcomes) / len(outcomes))
    np.testing.assert_allclose(tr.values(ranks_of(*some), text), expected, rtol=1e-12, atol=1e-15)


@every_metric
def test_optimistic_and_pessimistic_bound_all_orders_of_ties(text: str) -> None:
    orders, ranks = tied_instances()
    outcomes = [[reference.METRICS[text](ranking) for ranking in rankings] for rankings in orders if any(rankings[0])]
    ends = [[min(each) for each in outcomes], [max(each) for each in outcomes]]
    if tr.metric(text).lower_is_better:
        ends.reverse()
    defined = ranks.n_relevant > 0
    got = [tr.values(ranks, text, ties=ties)[defined] for ties in ("pessimistic", "optimistic")]
    np.testing.assert_allclose(got, ends, rtol=1e-12, atol=1e-15)


@every_metric
def test_random_ties_average_to_the_expected_value(text: str) -> None:
    ranks = tr.Ranks(above=[1, 1, 1, 6], tied=[4, 4, 4, 2], n_candidates=[15], indptr=[0, 4])
    repeated = tr.Ranks.concatenate([ranks] * 5_000)
    drawn = tr.values(repeated, text, ties="random", rng=7)
    error = drawn.std() / math.sqrt(drawn.size)
    assert abs(drawn.mean() - tr.values(ranks, text)[0]) <= 5 * error + 1e-12
    np.testing.assert_array_equal(drawn, tr.values(repeated, text, ties="random", rng=7))


def test_random_orders_of_a_block_are_equally_likely() -> None:
    """Two relevant and three irrelevant tied items: ten orders, each with probability 1/10."""
    block = tr.Ranks.concatenate([tr.Ranks(above=[0, 0], tied=[3, 3], n_candidates=5, indptr=[0, 2])] * 50_000)
    above = block.break_ties("random", rng=3).above.reshape(-1, 2)
    counts = np.bincount(above[:, 0] * 4 + above[:, 1], minlength=16)
    seen = counts[counts > 0]
    assert seen.size == 10
    chi_square = float(((seen - 5_000) ** 2 / 5_000).sum())
    assert chi_square < 33.7, "beyond the 99.99 % quantile with nine degrees of freedom"


def test_large_tied_blocks_are_averaged_in_chunks() -> None:
    """Blocks of 300,000 ties are cut into chunks; the harmonic numbers say what must come out."""
    n = 300_000
    ranks = tr.Ranks(above=[0, 9], tied=[n - 1, n - 10], n_candidates=n)
    harmonic = np.cumsum(1.0 / np.arange(1, n + 1))
    expected = [harmonic[-1] / n, (harmonic[-1] - harmonic[8]) / (n - 9)]
    np.testing.assert_allclose(tr.values(ranks, "ap"), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "text", [text for text in reference.METRICS if isinstance(tr.metric(text), tr.metrics.PlainMetric)]
)
@pytest.mark.parametrize(("above", "block"), [(0, 1), (3, 1), (700, 1), (0, 2), (5, 3), (40, 9), (2, 30)])
def test_large_tied_blocks_are_summed_as_exactly_term_by_term(text: str, above: int, block: int) -> None:
    """The same metric as a function of one's own is summed over every order, however smooth it is."""
    metric, tied = plain(text), 5_000
    ranks = tr.Ranks(
        above=[above] * block, tied=[tied] * block, n_candidates=above + tied + block + 9, indptr=[0, block]
    )

    def same(rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return metric.term(rank, i, n_relevant, n)

    np.testing.assert_allclose(tr.values(ranks, metric), tr.values(ranks, same), rtol=1e-12, atol=1e-15)


@every_metric
def test_text_form_parses_back(text: str) -> None:
    metric = tr.metric(text)
    assert str(metric) == text
    assert tr.metric(str(metric)) == metric
    assert tr.metric(text.upper()) == metric
    assert hash(tr.metric(text)) == hash(metric)


@every_metric
def test_without_relevant_items_it_is_undefined_and_counted(text: str) -> None:
    ranks = tr.Ranks.from_ranks([[2], []], n=4)
    assert np.isnan(tr.values(ranks, text)).tolist() == [False, True]
    result = tr.estimate(ranks, text)
    assert (result.n, result.n_undefined) == (1, 1)
    assert result.mean == tr.values(ranks, text)[0]


@every_metric
@pytest.mark.parametrize("n", [1, 4])
def test_all_candidates_relevant(text: str, n: int) -> None:
    ranks = tr.Ranks.from_ranks([list(range(1, n + 1))], n=n)
    np.testing.assert_allclose(tr.values(ranks, text), [reference.METRICS[text]([True] * n)], rtol=1e-12)


@cache
def with_one_more_above() -> tuple[tr.Ranks, tr.Ranks]:
    """Up to three relevant items at all ranks, and the same with one more irrelevant item above the last of them."""
    chosen = [
        (n, list(ranks)) for n in (4, 5, 8, 15) for size in (1, 2, 3) for ranks in combinations(range(1, n), size)
    ]
    n = [number for number, _ in chosen]
    worse = [[*ranks[:-1], ranks[-1] + 1] for _, ranks in chosen]
    return tr.Ranks.from_ranks([ranks for _, ranks in chosen], n=n), tr.Ranks.from_ranks(worse, n=n)


@every_metric
def test_more_irrelevant_items_above_never_help(text: str) -> None:
    better, lower = (tr.values(ranks, text) for ranks in with_one_more_above())
    sign = -1 if tr.metric(text).lower_is_better else 1
    assert np.all(sign * better >= sign * lower - 1e-15)


@every_metric
def test_other_instances_do_not_matter(text: str) -> None:
    rng = np.random.default_rng(5)
    parts = []
    for n in rng.integers(5, 40, size=30):
        size = int(rng.integers(0, 4))
        parts.append(tr.Ranks.from_ranks([sorted(rng.choice(np.arange(1, n + 1), size, replace=False))], n=n))
    together = tr.values(tr.Ranks.concatenate(parts), text)
    np.testing.assert_array_equal(together, np.concatenate([tr.values(part, text) for part in parts]))


@pytest.mark.parametrize("ties", ["expected", "optimistic", "pessimistic", "random"])
def test_no_ties_no_difference(ties: Ties) -> None:
    ranks = tr.Ranks.from_ranks([[3, 7], [1]], n=9)
    np.testing.assert_array_equal(tr.values(ranks, "ap", ties=ties), tr.values(ranks, "ap"))


def test_unknown_tie_policy() -> None:
    with pytest.raises(tr.InputError, match=r"`ties` must be one of 'expected', .* got 'best'"):
        tr.values(tr.Ranks.from_ranks([1], n=2), "ap", ties="best")  # type: ignore[arg-type]
