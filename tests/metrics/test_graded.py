"""Graded metrics on graded ranks: definitions, ties among relevant items too, sampling, files."""

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests import reference
from tests.instances import all_small_and_some_larger, without_ties
from truerank.estimators.corrected import CORRECTIONS as BY_NAME
from truerank.estimators.corrected import Corrected
from truerank.metrics import DCG, GradedNDCG, MARp, Rp, WeightedRecall

every_graded_metric = pytest.mark.parametrize("text", reference.GRADED)

Instance = tuple[list[float], list[float]]
GRADES = [0.0, 0.0, 1.0, 2.0, 3.5]


def ranks_of(*given: Instance) -> tr.Ranks:
    """Return graded ranks through lists, which know what ties."""
    run = {user: dict(enumerate(scores)) for user, (scores, _) in enumerate(given)}
    truth = {user: dict(enumerate(grades)) for user, (_, grades) in enumerate(given)}
    return tr.read_lists(run, truth, depth="all")


def mean_over_orders(text: str, instance: Instance) -> float:
    outcomes = [reference.GRADED[text](ranking) for ranking in reference.orders(*instance)]
    return math.fsum(outcomes) / len(outcomes)


@cache
def tied_instances() -> tuple[list[Instance], tr.Ranks]:
    found = all_small_and_some_larger(GRADES, small=2, seed=2)
    return found, ranks_of(*found)


@every_graded_metric
def test_definition(text: str) -> None:
    found = without_ties(GRADES, seed=3)
    rankings = [next(reference.orders(*instance)) for instance in found]
    expected = [reference.GRADED[text](ranking) if any(ranking) else math.nan for ranking in rankings]
    np.testing.assert_allclose(tr.values(ranks_of(*found), text), expected, rtol=1e-12)


@every_graded_metric
def test_expected_is_the_mean_over_all_orders_of_ties(text: str) -> None:
    found, ranks = tied_instances()
    expected = [mean_over_orders(text, instance) if any(instance[1]) else math.nan for instance in found]
    np.testing.assert_allclose(tr.values(ranks, text), expected, rtol=1e-12, atol=1e-15)


@every_graded_metric
def test_optimistic_and_pessimistic_bound_all_orders_of_ties(text: str) -> None:
    found, ranks = tied_instances()
    graded = [any(grades) for _, grades in found]
    outcomes = [[reference.GRADED[text](order) for order in reference.orders(*one)] for one in found if any(one[1])]
    got = [tr.values(ranks, text, ties=ties)[graded] for ties in ("pessimistic", "optimistic")]
    ends = [[min(each) for each in outcomes], [max(each) for each in outcomes]]
    np.testing.assert_allclose(got, ends, rtol=1e-12)


@every_graded_metric
def test_random_ties_average_to_the_expected_value(text: str) -> None:
    instance = [3.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0], [0.0, 1.0, 3.0, 0.0, 0.0, 2.0, 1.0]
    ranks = ranks_of(instance)
    drawn = tr.values(tr.Ranks.concatenate([ranks] * 5_000), text, ties="random", rng=7)
    error = drawn.std() / math.sqrt(drawn.size)
    assert abs(drawn.mean() - mean_over_orders(text, instance)) <= 5 * error + 1e-12


@cache
def one_by_one() -> list[tr.Ranks]:
    """Every third of the instances, as ranks of its own."""
    return [ranks_of(instance) for instance in tied_instances()[0][::3]]


@every_graded_metric
def test_other_instances_do_not_matter(text: str) -> None:
    alone = np.concatenate([tr.values(ranks, text) for ranks in one_by_one()])
    np.testing.assert_allclose(tr.values(tied_instances()[1], text)[::3], alone, rtol=1e-13)


def test_grades_do_not_change_plain_metrics() -> None:
    some = [instance for instance in tied_instances()[0] if any(instance[1])]
    run = {user: dict(enumerate(scores)) for user, (scores, _) in enumerate(some)}
    truth = {user: [item for item, grade in enumerate(grades) if grade] for user, (_, grades) in enumerate(some)}
    graded, plain = ranks_of(*some), tr.read_lists(run, truth, depth="all")
    for text in ("ndcg@3", "ap", "auc", "r-precision"):
        for ties in ("expected", "optimistic", "pessimistic"):
            got, expected = (tr.values(ranks, text, ties=ties) for ranks in (graded, plain))
            np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_without_grades_every_relevant_item_has_grade_1_and_a_note_says_so() -> None:
    ranks = tr.Ranks.from_ranks([[1, 4], [3]], n=9)
    np.testing.assert_allclose(tr.values(ranks, "gndcg@3"), tr.values(ranks, "ndcg@3"), rtol=1e-15)
    np.testing.assert_allclose(tr.values(ranks, "weighted-recall@3"), tr.values(ranks, "recall@3"), rtol=1e-15)
    assert tr.estimate(ranks, "rp@3").notes[0] == "these ranks have no grades: for rp@3 every relevant item has grade 1"
    graded = tr.Ranks.from_ranks([[1, 4], [3]], n=9, grades=[[1, 1], [1]])
    assert "no grades" not in "".join(tr.estimate(graded, "rp@3").notes)


@pytest.mark.parametrize("grade", [1e-12, 1e-17, 1e-300])
def test_exponential_gains_of_tiny_grades_keep_their_digits(grade: float) -> None:
    """2 ** grade - 1 loses them: it is grade * log(2), up to a factor of 1 + grade."""
    ranks = tr.Ranks.from_ranks([[1, 3]], n=5, grades=[[grade, 2 * grade]])
    linear = {text: tr.values(ranks, text).item() for text in ("dcg", "gndcg")}
    assert tr.values(ranks, "dcg(exp)").item() == pytest.approx(linear["dcg"] * math.log(2), rel=1e-11, abs=0)
    assert tr.values(ranks, "gndcg(exp)").item() == pytest.approx(linear["gndcg"], rel=1e-11)


def test_ndcg_stays_that_of_the_paper() -> None:
    graded = tr.Ranks.from_ranks([[1, 4]], n=9, grades=[[1, 5]])
    np.testing.assert_array_equal(tr.values(graded, "ndcg@5"), tr.values(tr.Ranks.from_ranks([[1, 4]], n=9), "ndcg@5"))


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("RP@5", Rp(5)),
        ("MARp@5,10", MARp((5, 10))),
        ("marp@30, 5, 10, 5", MARp((5, 10, 30))),
        ("marp@7", MARp((7,))),
        ("AvgRp@5,10", MARp((5, 10))),
        ("gNDCG", GradedNDCG()),
        ("gndcg(linear)@3", GradedNDCG(k=3)),
        ("gndcg(exp)@3", GradedNDCG("exp", 3)),
        ("dcg(EXP)", DCG("exp")),
        ("wrecall@3", WeightedRecall(3)),
    ],
)
def test_names(text: str, metric: tr.Metric) -> None:
    assert tr.metric(text) == metric


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("marp", r"marp needs a cut-off, as in 'marp@10'"),
        ("marp@5,x", r"marp is written 'marp@k,k,\.\.\.', got 'marp@5,x'"),
        ("marp@0,5", r"must be ascending whole numbers from 1, got 0,5"),
        ("gndcg(sqrt)@3", "the gain of gndcg.* must be 'linear' or 'exp', got 'sqrt'"),
        ("gndcg(exp,2)", r"gndcg is written 'gndcg@k' or 'gndcg\(gain\)@k'"),
        ("rp@0", "must be a whole number from 1, got 0"),
        ("ndcg@5,10", r"ndcg is written 'ndcg@k' or 'ndcg\(form\)@k'"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.metric(text)


@pytest.mark.parametrize("cutoffs", [(), (10, 5), (5, 5), (2.5,)])
def test_cutoffs_rise(cutoffs: Any) -> None:
    with pytest.raises(tr.InputError, match="must be ascending whole numbers from 1"):
        MARp(cutoffs)


def test_cut_lists() -> None:
    """What is missing from a list still counts in the divisor and in the ideal."""
    ranks = tr.read_lists({"q": ["a", "b"]}, {"q": {"a": 1, "c": 3, "d": 2, "e": 0}})
    ranking = [1.0, 0.0, 3.0, 2.0]
    assert tr.values(ranks, "gndcg@2")[0] == pytest.approx(reference.gndcg(ranking, k=2))
    assert tr.values(ranks, "rp@2")[0] == 0.0
    with pytest.raises(tr.InputError, match="marp@2,3 looks at rank 3, but these ranks are cut at depth 2"):
        tr.values(ranks, "marp@2,3")


def test_large_exponential_gains_are_refused() -> None:
    with pytest.raises(tr.InputError, match="needs grades up to 1000, got 1001"):
        tr.values(tr.Ranks.from_ranks([1], n=5, grades=[1001]), "dcg(exp)")


def graded(n: int = 40) -> tr.Ranks:
    ranks = [[1, 5, 6, 30], [2], [9, 11], [3, 4, 17]]
    return tr.Ranks.from_ranks(ranks, n=n, grades=[[1, 3, 3, 2], [2], [1, 4], [5, 5, 5]], ids=["a", "b", "c", "d"])


CORRECTIONS = ["rank", "rank(interpolate)", "ls", "cls", "bv(0.1)"]
SEVERAL = ["marp@2,5", "rp@5", "gndcg@5", "gndcg(exp)", "dcg@9", "weighted-recall@4"]


@pytest.mark.parametrize("text", SEVERAL)
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_everything_sampled_gives_the_exact_metric(text: str, correction: str) -> None:
    exact = tr.Ranks.from_ranks([[1, 5, 6, 12]], n=16, grades=[[1, 3, 3, 2]])
    sampled = tr.UniformSampling(12).draw(exact, rng=0)
    np.testing.assert_allclose(tr.values(sampled, f"{text}~{correction}"), tr.values(exact, text), atol=1e-7)


@pytest.mark.parametrize("text", SEVERAL)
@pytest.mark.parametrize("correction", ["ls", "bv(0.1)"])
def test_a_corrected_term_is_looked_up_in_a_table_of_the_whole_term(text: str, correction: str) -> None:
    """The same as if the term of one item were a metric of one's own."""
    sampled = tr.Ranks.from_sampled([[3]], m=10, n=60, grades=[[2]])

    def whole(rank: Any, i: Any, n_relevant: Any, n: Any) -> Any:
        flat = np.ravel(rank).astype(int)
        values = [reference_value(text, int(place)) for place in flat]
        return np.reshape(values, np.shape(rank))

    corrected = Corrected(tr.metric(whole), BY_NAME.read(correction))
    got, expected = tr.values(sampled, f"{text}~{correction}"), tr.values(sampled, corrected)
    np.testing.assert_allclose(got, expected, atol=1e-9)


def reference_value(text: str, rank: int) -> float:
    """The metric of one relevant item of grade 2 at a rank among 60."""
    ranks = tr.Ranks.from_ranks([rank], n=60, grades=[2])
    return tr.values(ranks, text).item()


@pytest.mark.parametrize("text", ["marp@2,5", "gndcg@5", "marp@2,5~bv(0.1)", "gndcg@5~cls", "marp@2,5~rank"])
@pytest.mark.parametrize("replace", [False, True])
def test_risk_is_what_many_samples_show(text: str, replace: bool) -> None:
    exact, design = graded(), tr.UniformSampling(8, replace)
    risk = tr.risk(exact, text, design)
    repeated = tr.Ranks.concatenate([exact] * 5000)
    drawn = tr.values(design.draw(repeated, rng=4), text).reshape(5000, len(exact))
    error = drawn.std(axis=0) / math.sqrt(len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - risk.expected) <= 5 * error + 1e-12)
    np.testing.assert_allclose(drawn.var(axis=0), risk.variance, rtol=0.25, atol=1e-12)
    np.testing.assert_array_equal(risk.exact, tr.values(exact, text.partition("~")[0]))


def test_consistency_is_the_expectation_at_each_size() -> None:
    better = tr.Ranks.from_ranks(
        [[1, 5, 6, 20], [1], [3, 11], [3, 4, 7]], n=40, grades=[[3, 3, 1, 2], [2], [4, 1], [5] * 3]
    )
    both = {"a": graded(), "b": better}
    for text in ("marp@2,5", "gndcg@5", "gndcg@5~bv(0.1)"):
        found = tr.consistency(both, text, sizes=[5, 12])
        for name, ranks in both.items():
            expected = [tr.risk(ranks, text, tr.UniformSampling(m)).mean for m in (5, 12)]
            np.testing.assert_allclose(found.curves[name], expected, rtol=1e-9)


def test_relevant_items_of_other_grades_that_tie_are_ties() -> None:
    alike, apart = (ranks_of(([2.0, 2.0, 1.0], grades)) for grades in ([2.0, 2.0, 0.0], [2.0, 1.0, 0.0]))
    assert (alike.has_ties, apart.has_ties) == (False, True)
    assert tr.estimate(apart, "gndcg").n_tied == 1
    with pytest.raises(tr.InputError, match="is not defined if relevant items with different grades tie"):
        tr.risk(apart, "gndcg", tr.UniformSampling(1))
    assert tr.risk(apart.break_ties("optimistic"), "gndcg", tr.UniformSampling(1)).exact.tolist() == [1.0]


def test_ties_among_relevant_items_survive_a_sample_that_has_no_other_tied_item() -> None:
    exact = ranks_of(([9.0, 9.0, 9.0] + [1.0] * 20, [2.0, 1.0, 0.0] + [0.0] * 20))
    parts = [tr.UniformSampling(2).draw(exact, rng=seed) for seed in range(20)]
    alone = next(part for part in parts if not part.tied.any())
    assert tr.values(alone, "gndcg")[0] == pytest.approx(mean_over_orders("gndcg", ([9.0, 9.0, 1.0], [2.0, 1.0, 0.0])))


def sample() -> tr.Ranks:
    return tr.Ranks(
        above=[2, 3, 3, 3, 0, 4],
        tied=[0, 0, 0, 0, 1, 0],
        n_candidates=[10, 8, 5, 6],
        indptr=[0, 4, 5, 5, 6],
        grades=[1, 2, 0.5, 2, 3, 1],
        same_score=[False, False, True, False, False, False],
        ids=["ann", "bob", "cy", "dee"],
    )


@pytest.mark.parametrize("name", ["ranks.parquet", "ranks.npz"])
def test_grades_survive_files_slices_and_joins(tmp_path: Path, name: str) -> None:
    ranks = sample()
    ranks.save(tmp_path / name)
    assert tr.Ranks.load(tmp_path / name) == ranks
    assert tr.read_ranks(tmp_path / name) == ranks
    assert tr.Ranks.concatenate([ranks[:1], ranks[1:]]) == ranks
    np.testing.assert_array_equal(tr.values(ranks[[3, 0]], "gndcg"), tr.values(ranks, "gndcg")[[3, 0]])
    assert ranks != tr.Ranks.concatenate([ranks[:1].break_ties("optimistic"), ranks[1:]])
    assert repr(ranks) == "Ranks(4 instances, 6 graded items, 5 to 10 candidates, 50.0 % of instances tied)"


@pytest.mark.parametrize("key", [slice(1, None), slice(None, None, -1), [3, 0, 0], 1])
def test_parts_inherit_truth_ranks(key: Any) -> None:
    whole, fresh = sample(), sample()
    assert whole.truth_rank.tolist() == [3, 1, 4, 1, 1, 1]
    np.testing.assert_array_equal(whole[key].truth_rank, fresh[key].truth_rank)


def test_only_graded_ranks_join_graded_ones() -> None:
    with pytest.raises(tr.InputError, match="that all have grades, or all have none"):
        tr.Ranks.concatenate([sample(), tr.Ranks.from_ranks([1], n=5)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grades": [1, 2]}, r"`grades` must hold one number per relevant item \(6\), got shape \(2,\)"),
        ({"grades": [1, 2, 0, 2, 3, 1]}, r"`grades` must be finite and above 0 .* got 0\.0 at position 2"),
        ({"grades": [1, 2, math.nan, 2, 3, 1]}, "got nan at position 2"),
        ({"same_score": [True] + [False] * 5}, "`same_score` must be false unless .* got True at position 0"),
        ({"same_score": [False, True] + [False] * 4}, "got True at position 1"),
        ({"same_score": [False]}, r"`same_score` must have the length of `above` \(6\)"),
    ],
)
def test_bad_grades(change: dict[str, Any], message: str) -> None:
    names = ("above", "tied", "n_candidates", "indptr", "grades", "same_score")
    good = {name: getattr(sample(), name) for name in names}
    with pytest.raises(tr.InputError, match=message):
        tr.Ranks(**(good | change))


def test_grades_follow_their_ranks() -> None:
    ranks = tr.Ranks.from_ranks([[5, 1], [2]], n=9, grades=[[4, 2], [1]])
    assert ranks.grades is not None
    assert ranks.grades.tolist() == [2, 4, 1]
    with pytest.raises(tr.InputError, match=r"one number per relevant item \(3\)"):
        tr.Ranks.from_ranks([[5, 1], [2]], n=9, grades=[[4], [1]])


def test_grades_in_tables_of_ranks(tmp_path: Path) -> None:
    (tmp_path / "ranks.csv").write_text("user,rank,n,grade\na,3,10,2\nb,1,9,1.5\na,1,10,4\n")
    expected = tr.Ranks.from_ranks([[1, 3], [1]], n=[10, 9], ids=["a", "b"], grades=[[4.0, 2.0], [1.5]])
    assert tr.read_ranks(tmp_path / "ranks.csv") == expected
    (tmp_path / "sampled.csv").write_text("user,rank,m,n,grade\na,3,20,100,2\na,1,20,100,4\n")
    sampled = tr.read_ranks(tmp_path / "sampled.csv")
    assert sampled == tr.Ranks.from_sampled([[1, 3]], m=20, n=100, ids=["a"], grades=[[4, 2]])
    (tmp_path / "single.csv").write_text("rank,n,grade\n3,10,2\n")
    assert tr.read_ranks(tmp_path / "single.csv") == tr.Ranks.from_ranks([3], n=10, grades=[2])


def test_contradicting_and_missing_grades() -> None:
    run = {"user": ["u", "u"], "item": ["a", "b"]}
    facts = {"user": ["u", "u", "u"], "item": ["b", "a", "a"], "relevance": [1.0, 2.0, 2.0]}
    import pandas as pd

    ranks = tr.read_lists(pd.DataFrame(run), pd.DataFrame(facts))
    assert ranks.notes == ("1 repeated row of the truth counts once",)
    assert ranks.grades is not None
    assert ranks.grades.tolist() == [2.0, 1.0]
    facts["relevance"] = [1.0, 2.0, 3.0]
    with pytest.raises(tr.InputError, match=r"item 'a' of user 'u' has two grades, [23] and [23]"):
        tr.read_lists(pd.DataFrame(run), pd.DataFrame(facts))
    with pytest.raises(tr.InputError, match=r"the relevance of item 'a' for user 'u' is NaN"):
        tr.read_lists({"u": ["a"]}, {"u": {"a": math.nan}})


def test_repeats_count_once_and_take_their_place() -> None:
    run, truth = {"q": ["a", "a", "b", "x", "b", "c"]}, {"q": ["a", "b", "c"]}
    with pytest.raises(tr.InputError, match="item 'a' of user 'q' is in the list more than once"):
        tr.read_lists(run, truth)
    ranks = tr.read_lists(run, truth, invalid="count")
    assert ranks.rank.tolist() == [1, 3, 6]
    with pytest.raises(tr.InputError, match="`invalid` must be one of 'refuse', 'count', 'last', got 'drop'"):
        tr.read_lists(run, truth, invalid="drop")  # type: ignore[arg-type]


def test_a_table_belongs_to_a_part() -> None:
    with pytest.raises(tr.InputError, match=r"rp@5~bv\(0.1\) depends on grades and has no single table"):
        tr.estimators.correction_table("rp@5~bv(0.1)", design=10, n=100)


def test_expected_reciprocal_rank_has_one_probability_for_all_grades() -> None:
    graded = tr.Ranks.from_ranks([[1, 4]], n=5, grades=[[1, 2]])
    assert tr.values(graded, "err(0.25)").item() == 0.25 + 0.75 * 0.25 / 4
    (note,) = tr.evaluate(graded, "err").notes[:1]
    assert note == "err counts relevant items of all grades alike; gndcg@k tells them apart"
    same = tr.Ranks.from_ranks([[1, 4]], n=5, grades=[[2, 2]])
    assert "err counts" not in "".join(tr.evaluate(same, "err").notes)
