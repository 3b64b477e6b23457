"""The benchmark of verdicts: its laws, its truth, and a quick run."""

import sys
from pathlib import Path

import numpy as np
import pytest

import truerank as tr

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import rank_laws  # noqa: E402
import verdicts  # noqa: E402


def exact(places: np.ndarray) -> tr.Ranks:
    return tr.Ranks(above=places[0], tied=places[1], n_candidates=rank_laws.N)


def test_expectations_are_those_of_many_users() -> None:
    rng = np.random.default_rng(0)
    for pair in rank_laws.all_pairs().values():
        for law, places in zip(pair.laws, pair.draw(20_000, rng), strict=True):
            assert law.chances.sum() == pytest.approx(1)
            values = tr.values(exact(places), pair.metric)
            error = values.std() / np.sqrt(values.size) + 1e-4
            assert values.mean() == pytest.approx(law.mean(pair.metric), abs=5 * error), pair.name


def test_worst_cases_look_alike_and_differ() -> None:
    alike = [pair for pair in rank_laws.all_pairs().values() if pair.alike_under]
    assert {pair.alike_under for pair in alike} == {"uniform(20)", "uniform(100)"}
    for pair in alike:
        design = verdicts.by_name()[pair.alike_under].design
        assert design is not None
        assert design.m is not None
        chances = rank_laws.uniform_chances(design.m, np.arange(rank_laws.N))
        a, b = (law.chances @ chances[law.above] for law in pair.laws)
        assert abs(a - b).sum() < 1e-5
        assert abs(pair.gain(pair.metric)) > 0.02


@pytest.mark.parametrize("name", ["exact", "exact, 1 to 5 sessions", "uniform(100)", "uniform(1000), 1 to 5 sessions"])
def test_repetitions_as_groups_are_as_repetitions_apart(name: str) -> None:
    setting, pair = verdicts.by_name()[name], rank_laws.all_pairs()["power laws, one steeper"]
    rng = np.random.default_rng(0)
    users = verdicts.Users.of(12, 6, setting.sessions, rng)
    ranks = {own: users.ranks(places, setting, rng) for own, places in zip("AB", pair.draw(72, rng), strict=True)}
    metric = pair.metric + setting.estimator
    together = verdicts.differences(ranks, pair.metric, users)
    means = verdicts.estimates({"A": ranks["A"]}, metric, users)
    for found, mean, own in zip(together, means, users.apart(ranks), strict=True):
        alone = tr.compare(own, pair.metric).differences[0]
        assert found.verdict == alone.verdict
        assert found.confidence_interval() == pytest.approx(alone.confidence_interval())
        single = tr.evaluate(own["A"], metric)[metric]
        assert mean.confidence_interval() == pytest.approx(single.confidence_interval())


def test_false_verdicts_are_counted() -> None:
    """B is better by 0.5, but in these two comparisons A is named; then nothing is determined."""
    good, bad = (tr.Ranks.from_ranks([rank] * 100, n=rank_laws.N) for rank in (1, 50))
    found = [tr.compare({"A": a, "B": b}, "ap").differences[0] for a, b in ((good, bad), (good, bad), (good, good))]
    counts = verdicts.judged(found, 0.5, alike=False)
    assert (counts.repetitions, counts.false_better, counts.decided, counts.covered) == (3, 2, 0, 0)
    assert verdicts.judged(found, -0.98, alike=False).decided == 2
    assert verdicts.judged(found, -0.98, alike=True).false_better == 2


def test_cells_fail_beyond_what_chance_explains() -> None:
    assert verdicts.Counts(1_000, 950, 50, 50).rarity > verdicts.NEAR
    for bad in (verdicts.Counts(1_000, 905), verdicts.Counts(1_000, 950, 80), verdicts.Counts(1_000, 950, 0, 0, 80)):
        assert bad.rarity < verdicts.FAILED


def test_a_run_goes_on_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, shown = tmp_path / "found.csv", []
    choice = [
        "--cell",
        "head-first, 30",
        "half at 11 to 20",
        "--repetitions",
        "20",
        "--processes",
        "1",
        "--results",
        str(path),
    ]
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", ["verdicts.py", *choice])
        with pytest.raises(SystemExit, match="0"):
            verdicts.main()
        shown.append(capsys.readouterr().out)
        monkeypatch.setattr(verdicts, "measured", None)  # nothing is left to measure
    assert shown[0] == shown[1]
    assert "0 of 2 cells fail" in shown[0]
    assert len(verdicts.read(path)) == 2


def test_the_table_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Before\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nAfter\n")
    verdicts.write_table(page, ["| a | b |", "|---|---|", "| 3 | 4 |", "| 5 | 6 |"])
    assert page.read_text() == "Before\n\n| a | b |\n|---|---|\n| 3 | 4 |\n| 5 | 6 |\n\nAfter\n"


def test_margins_that_are_passed_falsely_are_counted_for_each_of_two_equal_recommenders() -> None:
    good, bad = (tr.Ranks.from_ranks([rank] * 100, n=rank_laws.N) for rank in (1, 50))
    found = [tr.compare({"A": a, "B": b}, "ap").differences[0] for a, b in ((good, bad), (bad, good))]
    counts = verdicts.judged(found, 0.0, alike=False)
    assert (counts.a_passes, counts.b_passes, counts.false_not_worse) == (1, 1, 1)
    assert verdicts.judged(found, -0.98, alike=False).b_passes == 1
