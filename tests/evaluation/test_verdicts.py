"""Verdicts: over a table of cases, and the same wherever they are spoken of."""

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from tests.cli.running import run_here
from truerank.evaluation import paired_values
from truerank.evaluation.comparisons import conclusions
from truerank.evaluation.differences import (
    Difference,
    acceptance,
    conclusion,
    differences_table,
    found_best,
    leading,
)
from truerank.evaluation.intervals import Interval
from truerank.evaluation.paired_tests import Adjustment, Outcome, adjusted, adjusted_levels, number_of_tests
from truerank.report.headlines import headline
from truerank.report.report_data import ReportData


@dataclasses.dataclass(frozen=True)
class Normal(Outcome):
    """What is known of a difference that is normal around `mean`; nothing if it is NaN."""

    mean: float
    error: float = 1.0

    @property
    def p_value(self) -> float:
        return float(2 * stats.norm.sf(abs(self.mean) / self.error))

    def confidence_interval(self, level: float) -> Interval:
        return Interval(*(self.mean + self.error * stats.norm.ppf([0.5 - level / 2, 0.5 + level / 2])).tolist())


def difference(known: float, shown: float | None = None, **options: Any) -> Difference:
    """Return B - A of which `known` is known, in standard errors; `shown` is the difference of the means."""
    outcome, apparent = Normal(known), known if shown is None else shown
    given = dict[str, Any](
        recommender="B", baseline="A", metric="ap", group="", mean=apparent, baseline_mean=0.0, difference=apparent,
        standard_error=1.0, sampling_error=0.0, order_probability=1.0, n=100, n_undefined=0, n_units=100,
        p_value=outcome.p_value, adjusted_p_value=outcome.p_value, level=0.95, adjusted_level=0.95, margin=None,
        lower_is_better=False, bounded=False, outcome=outcome, expectation=outcome,
    )  # fmt: skip
    return Difference(**(given | options))


SAMPLED, LOWER = {"bounded": True}, {"lower_is_better": True}
STRICT = {"adjusted_p_value": 0.09, "adjusted_level": 0.975}
CASES = [
    # exact metrics
    (3.0, {}, "better", "B", "B is better"),
    (-3.0, {}, "better", "A", "A is better"),
    (1.0, {}, "no difference", None, "no difference found"),
    (0.0, {}, "no difference", None, "no difference found"),
    (math.nan, {}, "not determined", None, "not determined"),
    # less is better
    (3.0, {**LOWER}, "better", "A", "A is better"),
    (-3.0, {**LOWER}, "better", "B", "B is better"),
    (1.7, {**LOWER, "margin": 1.0}, "no difference", None, "no difference found"),
    (-1.0, {**LOWER, "margin": 1.0}, "not worse", None, "B is not worse by more than 1"),
    # bounds of the exact metric: the difference shown does not matter
    (3.0, {**SAMPLED, "shown": -2.0}, "better", "B", "B is better"),
    (-3.0, {**SAMPLED, "shown": 2.0}, "better", "A", "A is better"),
    (3.0, {**SAMPLED, **LOWER, "shown": -2.0}, "better", "A", "A is better"),
    (1.0, {**SAMPLED, "shown": -9.0}, "not determined", None, "not determined by this sample"),
    (math.nan, {**SAMPLED, "shown": -9.0}, "not determined", None, "not determined by this sample"),
    (-1.0, {**SAMPLED, "margin": 5.0, "shown": -9.0}, "equivalent", None, "B and A differ by less than 5"),
    (1.0, {**SAMPLED, "margin": 2.0, "shown": -9.0}, "not worse", None, "B is not worse by more than 2"),
    # margins: one-sided, so that 1.645 standard errors below the difference count
    (0.0, {"margin": 1.64}, "no difference", None, "no difference found"),
    (0.0, {"margin": 1.65}, "equivalent", None, "B and A differ by less than 1.65"),
    (0.1, {"margin": 1.65}, "not worse", None, "B is not worse by more than 1.65"),
    (-0.1, {"margin": 1.65}, "no difference", None, "no difference found"),
    (-3.0, {"margin": 5.0}, "better", "A", "A is better, but not by more than 5"),
    (-3.0, {"margin": 4.0}, "better", "A", "A is better"),
    (3.0, {"margin": 5.0}, "better", "B", "B is better"),
    (1.8, {"margin": 0.0}, "no difference", None, "no difference found"),
    (math.nan, {"margin": 5.0}, "not determined", None, "not determined"),
    # adjusted for two tests
    (2.0, {**STRICT}, "no difference", None, "no difference found"),
    (2.0, {**STRICT, "bounded": True}, "not determined", None, "not determined by this sample"),
    (0.0, {**STRICT, "margin": 1.95}, "no difference", None, "no difference found"),
    (0.0, {**STRICT, "margin": 1.97}, "equivalent", None, "B and A differ by less than 1.97"),
    (0.1, {**STRICT, "margin": 1.97}, "not worse", None, "B is not worse by more than 1.97"),
    # a test whose p-value and interval disagree finds nothing
    (1.9, {"adjusted_p_value": 0.01}, "no difference", None, "no difference found"),
]


@pytest.mark.parametrize(("known", "options", "kind", "winner", "words"), CASES)
def test_verdicts(known: float, options: dict[str, Any], kind: str, winner: str | None, words: str) -> None:
    found = difference(known, **options).finding
    assert (found.kind, found.winner, found.words) == (kind, winner, words)
    assert difference(known, **options).verdict == words


@pytest.mark.parametrize(("known", "options", "kind", "winner", "words"), CASES)
def test_a_reversed_difference_has_the_same_winner(
    known: float, options: dict[str, Any], kind: str, winner: str | None, words: str
) -> None:
    other = difference(known, **options).reversed()
    assert other.finding.winner == winner
    assert other.finding.kind == kind or "not worse" in (kind, other.finding.kind)  # which has a direction
    assert other.reversed().verdict == words
    if kind == "equivalent":
        assert other.verdict == words.replace("B and A", "A and B")


def test_a_remark_says_why_the_difference_shown_points_the_other_way() -> None:
    opposite = difference(3.0, shown=-2.0, bounded=True)
    assert opposite.finding.remark == "the difference shown is biased by the sampling and points the other way"
    assert opposite.reversed().finding.remark == opposite.finding.remark
    assert str(opposite).endswith(f"B is better; {opposite.finding.remark}")
    assert str(opposite).startswith("ap: B - A = -2.0000 [1.0400, 4.9600], p = 0.0027")
    for same in (difference(3.0), difference(-3.0, lower_is_better=True), difference(1.0, shown=-2.0, bounded=True)):
        assert same.finding.remark == ""


@pytest.mark.parametrize(
    ("known", "margin", "decision"),
    [
        (3.0, 0.0, "passes"),
        (1.8, 0.0, "cannot tell"),  # better by a one-sided test only, and `compare` finds no difference
        (-3.0, 0.0, "fails"),
        (0.0, 2.0, "passes"),
        (-3.0, 5.0, "passes"),
        (-3.0, 1.0, "fails"),
        (-3.0, 2.0, "cannot tell"),
        (-1.8, 0.1, "cannot tell"),  # worse by more than the margin, one-sided, and `compare` finds no difference
        (math.nan, 1.0, "cannot tell"),
    ],
)
def test_what_a_gate_decides(known: float, margin: float, decision: str) -> None:
    assert acceptance(difference(known, margin=margin), margin) == decision
    assert acceptance(difference(-known, margin=margin, lower_is_better=True), margin) == decision
    assert acceptance(difference(known, shown=-known, margin=margin, bounded=True), margin) == decision


@pytest.mark.parametrize("options", [{}, {"lower_is_better": True}])
def test_instances_needed_are_those_of_a_normal_test(options: dict[str, Any]) -> None:
    """100 instances with a standard deviation of 10 for each, and runs with an error; two-sided without a margin."""
    for known, margin, level, power in ((3.0, 0.0, 0.95, 0.8), (-2.0, 5.0, 0.9, 0.9), (1.0, 0.5, 0.99, 0.5)):
        sign = -1 if options else 1
        found = difference(sign * known, n_units=100, **options)
        quantiles = stats.norm.ppf(level if margin else (1 + level) / 2) + stats.norm.ppf(power)
        needed = found.instances_needed(margin, level=level, power=power)
        assert needed == math.ceil((quantiles * 10 / (known + margin)) ** 2)
        runs = dataclasses.replace(found, run_error=0.6)
        left = (known + margin) ** 2 - (quantiles * 0.6) ** 2
        more = (quantiles * 8) ** 2 / left if left > 0 else math.inf
        assert runs.instances_needed(margin, level=level, power=power) == (math.ceil(more) if left > 0 else more)
        assert runs.effect_size == pytest.approx(sign * known / 8)
        assert runs.user_error == pytest.approx(0.8)
        assert dataclasses.replace(runs, sampling_error=0.48).user_error == pytest.approx(0.64)
    assert difference(2.0, baseline_mean=-4.0).relative == 0.5


def test_instances_needed_to_find_a_loss_also_show_that_it_is_one() -> None:
    """A loss beyond a small margin fails a gate only if the new one is worse by the two-sided test, too."""
    for margin, distance, level in ((0.01, 2.0, 0.975), (1.0, 1.0, 0.95)):
        wanted = ((stats.norm.ppf(level) + stats.norm.ppf(0.8)) * 10 / distance) ** 2
        assert difference(-2.0, n_units=100).instances_needed(margin) == math.ceil(wanted)
    assert math.isnan(difference(2.0, baseline_mean=0.0).relative)


def test_intervals_end_where_the_metric_ends() -> None:
    found = difference(3.0, largest=4.0, adjusted_level=0.99, expectation=Normal(-3.0))
    reach = stats.norm.ppf(0.995)
    assert found.confidence_interval() == pytest.approx((3 - reach, 4.0))
    assert found.expectation_interval() == pytest.approx((-4.0, reach - 3))
    assert found.confidence_interval(0.5) == pytest.approx((3 - stats.norm.ppf(0.75), 3 + stats.norm.ppf(0.75)))
    assert dataclasses.replace(found, lower_is_better=True).gain_interval() == pytest.approx((-4.0, reach - 3))


def test_shares_better_off_have_the_interval_of_clopper_and_pearson() -> None:
    for count in range(13):
        found = difference(1.0, n_units=12, better_off=count / 12)
        wanted = stats.binomtest(count, 12).proportion_ci(0.95)
        assert found.better_off_interval() == pytest.approx((wanted.low, wanted.high), rel=1e-9)


def slow_holm(p: list[float], alpha: float) -> tuple[list[bool], list[float]]:
    """Return which hypotheses Holm rejects one by one, and the error that each interval may have."""
    left, rejected = sorted(range(len(p)), key=lambda at: p[at]), [False] * len(p)
    shares = [math.nan] * len(p)
    while left and p[left[0]] <= alpha / len(left):
        shares[left[0]], rejected[left[0]] = alpha / len(left), True
        left.pop(0)
    for at in left:
        shares[at] = alpha / len(left)
    return rejected, shares


@pytest.mark.parametrize("seed", range(20))
def test_levels_by_holm_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = (rng.random(8) ** 4).tolist()
    rejected, shares = slow_holm(p, 0.05)
    assert 1 - adjusted_levels(p, "holm", 0.95) == pytest.approx(shares, rel=1e-9)
    assert (adjusted(p, "holm") <= 0.05).tolist() == rejected
    assert [own <= share for own, share in zip(p, shares, strict=True)] == rejected


@pytest.mark.parametrize("seed", range(20))
def test_levels_by_benjamini_and_hochberg_bound_the_false_coverage_rate(seed: int) -> None:
    p = np.random.default_rng(seed).random(8) ** 4
    rejected = stats.false_discovery_control(p) <= 0.05
    share = 0.05 * max(rejected.sum(), 1) / 8
    assert 1 - adjusted_levels(p, "benjamini-hochberg", 0.95) == pytest.approx([share] * 8, rel=1e-9)
    assert (p <= share).tolist() == rejected.tolist()


def test_what_has_no_p_value_is_no_test() -> None:
    given = [0.04, math.nan, 0.01]
    assert number_of_tests(given) == 2
    assert (1 - adjusted_levels(given, "holm", 0.95)).round(4).tolist() == [0.05, 0.05, 0.025]
    assert adjusted_levels([math.nan], "holm", 0.9).tolist() == [0.9]
    assert adjusted_levels(given, "none", 0.9).tolist() == [0.9] * 3
    assert adjusted_levels([], "holm", 0.9).size == 0


def some_pair(seed: int, gap: int, n: int = 300) -> dict[str, tr.Ranks]:
    """Return exact ranks of A and B, which is better by about `gap` places."""
    rng = np.random.default_rng(seed)
    a = rng.integers(1 + max(gap, 0), 200, n)
    b = np.clip(a - gap + rng.integers(-20, 21, n), 1, 250)
    return {name: tr.Ranks.from_ranks(own, n=300, ids=np.arange(n)) for name, own in {"A": a, "B": b}.items()}


@pytest.mark.parametrize("how", ["holm", "benjamini-hochberg", "none"])
def test_an_interval_excludes_0_where_a_difference_is_found(how: Adjustment) -> None:
    ranks = {f"{name}{seed}": one for seed in range(3) for name, one in some_pair(0, 3 * seed).items()}
    result = tr.compare(ranks, ["rr", "auc", "recall@10"], adjustment=how)
    found = [each.finding.kind == "better" for each in result.differences]
    assert 0 < sum(found) < len(found)
    for each, better in zip(result.differences, found, strict=True):
        low, high = each.confidence_interval()
        assert (low > 0 or high < 0) == better == (each.adjusted_p_value <= 0.05)
        assert each.confidence_interval() == each.confidence_interval(each.adjusted_level)
        assert each.record()["low"] == low
    assert result.n_tests == len(found) == 45
    words = {"holm": "adjusted for 45 tests (Holm)", "none": "not adjusted for 45 tests"}
    said = words.get(how, "adjusted for 45 tests (Benjamini-Hochberg)")
    assert result.notes[-1] == f"p-values, intervals and verdicts are {said}"


def test_the_number_of_tests_is_not_said_of_one() -> None:
    assert not any("tests" in note for note in tr.compare(some_pair(0, 3), "rr").notes)


def misleading(n: int = 5_000) -> dict[str, tr.Ranks]:
    """Return samples that show A far ahead, though B is better: 0.30 against 0 by ndcg@10."""
    a = tr.Ranks.from_ranks(np.full(n, 15), n=1001, ids=np.arange(n))
    b = tr.Ranks.from_ranks(np.where(np.arange(n) < 0.3 * n, 1, 1000), n=1001, ids=np.arange(n))
    return {"A": tr.UniformSampling(100).draw(a, rng=1), "B": tr.UniformSampling(100).draw(b, rng=2)}


def test_the_winner_is_that_of_the_exact_metric(tmp_path: Path) -> None:
    ranks = misleading()
    result = tr.compare(ranks, ["ndcg@10", "ap~bv(1)"])
    for each in result.differences:
        assert each.difference < 0 < each.confidence_interval().low
        assert (each.verdict, each.finding.winner) == ("B is better", "B")
    remark = "B is better; the difference shown is biased by the sampling and points the other way"
    assert result.notes[:2] == (f"ndcg@10: {remark}", f"ap~bv(1): {remark}")
    assert conclusions(result) == ("ndcg@10: B is better.", "ap~bv(1): B is better.")
    sentence = headline(ReportData.of(ranks, "ndcg@10", m=100)).claim
    by = r"0\.\d+ to 0\.\d+ \(95 % interval\)"
    assert re.match(f"B is better than A on NDCG@10 by {by}; the difference shown is biased", sentence)
    for name, one in ranks.items():
        one.save(tmp_path / f"{name}.parquet")
    for new, old, code, start in (
        ("A", "B", 1, "fails: A is worse than B"),
        ("B", "A", 0, "passes: B is better than A"),
    ):
        done = run_here(
            "gate",
            tmp_path / f"{new}.parquet",
            "--against",
            tmp_path / f"{old}.parquet",
            "-m",
            "ndcg@10",
            "--margin",
            0,
        )
        assert (done.exit_code, done.stdout.splitlines()[-1][: len(start)]) == (code, start)
        assert "points the other way" in done.stdout
    assert not bold(tr.evaluate(ranks, ["ndcg@10", "ap~bv(1)"]))  # the better one shows the worse value


def bold(table: tr.Evaluation) -> dict[tuple[str, str], bool]:
    """Return the cells that are bold, which must be the same in all forms that have bold type."""
    found = []
    for line in table.to_markdown().splitlines()[2:]:
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        found += [(name, metric) for metric, cell in zip(table.metrics, cells, strict=False) if cell.startswith("**")]
    assert table.to_html().count("<b>") == len(found)
    assert table._repr_html_() == table.to_html()
    assert len(re.findall(r"\\(?:mathbf|textbf)\{", table.to_latex())) == len(found)
    return dict.fromkeys(found, True)


PAIRS = [
    *(("exact", seed, gap) for seed, gap in enumerate([0, 1, -4, 15])),
    *(("uniform", seed, gap) for seed, gap in enumerate([0, 5, -60, 100])),
]


@pytest.mark.parametrize(("how", "seed", "gap"), PAIRS)
@pytest.mark.parametrize("metric", ["ndcg@20", "mean-rank"])
def test_all_that_speak_agree(
    how: str, seed: int, gap: int, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paired_values, "_MOST", 5)  # draws of samples, by which all estimate the same errors
    ranks = some_pair(seed, gap)
    if how == "uniform":
        ranks = {name: tr.UniformSampling(150).draw(one, rng=seed) for name, one in ranks.items()}
    result = tr.compare(ranks, metric)
    (found,) = result.differences
    winner = found.finding.winner
    # the table, its forms, and the sentence below it
    for form in (str(result), result.to_latex(), result.to_markdown(), result.to_html(), result.to_json()):
        assert found.verdict in form
    assert conclusions(result) == (f"{metric}: {found.verdict}.",)
    # a gate, in both directions
    for name, one in ranks.items():
        one.save(tmp_path / f"{name}.parquet")
    for new, old in ("AB", "BA"):
        paths = tmp_path / f"{new}.parquet", "--against", tmp_path / f"{old}.parquet"
        done = run_here("gate", *paths, "-m", metric, "--margin", 0)
        assert done.exit_code == {new: 0, old: 1, None: 3}[winner]
        assert done.stdout.splitlines()[-1].startswith({new: "passes: ", old: "fails: ", None: "cannot tell"}[winner])
    # the headline of a report, and the sentence and the table of its section
    material = ReportData.of(ranks, metric, m=20)
    claim = headline(material).claim
    assert claim.startswith("It is open whether " if winner is None else f"{winner} is better than ")
    assert ("no difference was found" in claim) == (found.finding.kind == "no difference")
    assert ("the sample does not determine it" in claim) == (found.finding.kind == "not determined")
    # bold type
    assert set(bold(tr.evaluate(ranks, metric))) == (set() if winner is None else {(winner, metric)})


def of_several(**known: float) -> list[Difference]:
    """Return all differences between recommenders of which the strengths are known, in standard errors."""
    names = list(known)
    return [
        dataclasses.replace(difference(known[b] - known[a]), recommender=b, baseline=a, mean=known[b],
                            baseline_mean=known[a])
        for at, a in enumerate(names) for b in names[at + 1 :]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ({"A": 0.0, "B": 9.0, "C": 3.0}, "B is best: it is better than A, C."),
        ({"A": 0.0, "B": 9.0, "C": 8.5}, "B is better than A; no difference from C was found."),
        ({"A": 0.0, "B": 0.5, "C": 0.2}, "B has the best mean, but no difference from any other was found."),
    ],
)
def test_a_sentence_on_several(known: dict[str, float], sentence: str) -> None:
    assert conclusion(of_several(**known)) == sentence


def test_who_leads_among_biased_means_is_who_was_found_better() -> None:
    shown = {"A": 5.0, "B": 1.0, "C": 3.0}
    exact = of_several(A=0.0, B=9.0, C=3.0)
    biased = [
        dataclasses.replace(each, bounded=True, mean=shown[each.recommender], baseline_mean=shown[each.baseline],
                            difference=shown[each.recommender] - shown[each.baseline])
        for each in exact
    ]  # fmt: skip
    assert leading(biased) == "B"
    assert conclusion(biased) == "B is best: it is better than A, C."
    undecided = [dataclasses.replace(each, outcome=Normal(0.0), adjusted_p_value=1.0) for each in biased]
    assert conclusion(undecided) == "the order is not determined by this sample."


def test_sentences_against_a_baseline() -> None:
    own = [
        dataclasses.replace(difference(known, margin=2.0), recommender=name)
        for name, known in {"B": 3.0, "C": -9.0, "D": 0.0, "E": -1.0, "F": 1.0}.items()
    ]
    assert conclusion(own) == "better than A: B; worse than A: C; less than 2 from A: D; " + (
        "not worse than A by more than 2: F; no difference from A was found: E."
    )


def test_nobody_is_best_who_is_not_better_than_all() -> None:
    ranks = some_pair(1, 60) | {"C": some_pair(1, 60)["B"]}
    result = tr.compare(ranks, "auc")
    assert found_best(result.of("auc")) is None
    assert not bold(tr.evaluate(ranks, "auc"))
    assert found_best(tr.compare(some_pair(1, 60), "auc").of("auc")) == "B"


def test_values_that_cannot_be_compared_are_not_bold() -> None:
    ranks = some_pair(1, 60)
    assert set(bold(tr.evaluate(ranks, "auc"))) == {("B", "auc")}
    assert not bold(tr.evaluate({"A": ranks["A"][:200], "B": ranks["B"]}, "auc"))
    assert not bold(tr.evaluate(ranks["B"], "auc"))
    assert not bold(tr.evaluate(ranks, "auc", convention="recbole"))


@pytest.mark.parametrize("how", ["none", "holm", "benjamini-hochberg"])
def test_levels_stay_where_nothing_is_tested(how: Adjustment) -> None:
    assert adjusted_levels([math.nan, math.nan], how, 0.9).tolist() == [0.9, 0.9]


def test_of_three_the_conclusion_says_which_may_be_best() -> None:
    rng = np.random.default_rng(0)
    good = rng.integers(1, 20, 200)
    drawn = {"A": good, "B": rng.permutation(good), "C": rng.integers(30, 100, 200)}
    result = tr.compare({name: tr.Ranks.from_ranks(own, n=100) for name, own in drawn.items()}, "rr")
    assert conclusions(result)[0].endswith("no difference from B was found. One of A, B is best (95 %).")


def test_a_reversed_outcome_has_the_same_p_value() -> None:
    found = difference(1.3)
    assert found.reversed().outcome.p_value == found.outcome.p_value == Normal(1.3).p_value


def test_columns_of_a_table_of_differences() -> None:
    plain, sampled, unknown = (
        difference(1.0),
        difference(1.0, sampling_error=0.6),
        difference(1.0, sampling_error=math.nan),
    )
    runs = difference(1.0, run_error=0.6, group="new")
    for given, parts, cell in (
        (plain, None, ""),
        (sampled, "from users, candidates", "0.8000, 0.6000"),
        (unknown, "from users, candidates", "unknown"),
        (runs, "from users, runs", "0.8000, 0.6000"),
        (dataclasses.replace(runs, sampling_error=0.64), "from users, runs, candidates", "0.4800, 0.6000, 0.6400"),
    ):
        table = differences_table([given], "")
        row = dict(zip(table.header, (each.text for each in table.rows[0]), strict=True))
        assert row.get(parts or "") == (cell or "B - A")
        assert ("group" in row, table.labels) == ((True, 2) if given.group else (False, 1))
        assert [name for name in row if name.startswith("from")] == ([parts] if parts else [])


@pytest.mark.parametrize(("lower", "first"), [(False, "C"), (True, "A")])
def test_of_several_that_none_beats_the_one_with_the_best_mean_leads(lower: bool, first: str) -> None:
    means = {"A": 0.1, "B": 0.2, "C": 0.3}
    own = [
        difference(
            0.1, recommender=one, baseline=other, mean=means[one], baseline_mean=means[other], lower_is_better=lower
        )
        for one, other in ("BA", "CA", "CB")
    ]
    assert leading(own) == first
    assert found_best(own) is None
