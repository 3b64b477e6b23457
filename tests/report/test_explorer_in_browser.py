"""The explorer in a real browser: its numbers against the library's, and what its controls change."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import truerank as tr
from tests.cli.running import refusal, run_here
from tests.report.conftest import Opened
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC

Visit = Callable[..., Opened]
Setting = dict[str, Any]
SIZES = [(10, 1), (10, 9), (50, 20), (200, 199), (1_000, 100), (3_000, 37)]
METRICS = ["auc", "ap", "ndcg", "recall@k", "precision@k", "ap@k", "ndcg@k"]


@pytest.fixture(scope="session")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "explore.html"
    rng = np.random.default_rng(2)
    tied = tr.Ranks(above=[3, 5, 9], tied=[2, 0, 4], n_candidates=[500, 500, 500])
    tr.write_explorer(path, {"</script>": tr.Ranks.from_ranks(rng.integers(1, 500, 400), n=500), "tied": tied})
    return path


@pytest.fixture
def opened(visit: Visit, explorer: Path) -> Opened:
    return visit(explorer)


def setting(n: int, m: int, metric: str, **options: Any) -> Setting:
    return {"n": n, "m": m, "metric": metric, "k": 3, "replace": False, "correction": "none", "gamma": 0.1} | options


def named(given: Setting) -> str:
    correction = {"none": "", "rank": "~rank", "bv": f"~bv({given['gamma']:g})"}[given["correction"]]
    return given["metric"].replace("@k", f"@{given['k']}") + correction


def design(given: Setting) -> tr.UniformSampling:
    return tr.UniformSampling(given["m"], given["replace"])


@pytest.mark.parametrize("replace", [False, True])
def test_laws(opened: Opened, replace: bool) -> None:
    for n, m in SIZES:
        for g in sorted({0, 1, n // 3, n - 2, n - 1}):
            found = opened.evaluate("sample => LAWS.law(sample)", {"g": g, "m": m, "N": n - 1, "replace": replace})
            law = np.zeros(m + 1)
            law[found["first"] : found["first"] + len(found["p"])] = found["p"]
            expected = (BINOMIAL if replace else HYPERGEOMETRIC).pmf(np.arange(m + 1), g, m, n - 1)
            np.testing.assert_allclose(law, expected, atol=1e-13)


@pytest.mark.parametrize("replace", [False, True])
def test_expected_metrics_and_variances(opened: Opened, replace: bool) -> None:
    for (n, m), metric in product(SIZES, METRICS):
        check_moments(opened, setting(n, m, metric, replace=replace))


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("correction", "gamma"), [("rank", 1.0), ("bv", 1.0), ("bv", 0.1), ("bv", 0.001)])
def test_corrections(opened: Opened, replace: bool, correction: str, gamma: float) -> None:
    for (n, m), metric in product(SIZES, METRICS):
        given = setting(n, m, metric, replace=replace, correction=correction, gamma=gamma)
        table = opened.evaluate("given => [...LAWS.table(given)]", given)
        expected = tr.correction_table(named(given), design(given), n=n)
        np.testing.assert_allclose(table, expected, atol=1e-9)
        check_moments(opened, given)


def check_moments(opened: Opened, given: Setting) -> None:
    """Compare expectation and variance at some ranks with those of the library."""
    ranks = np.unique(np.geomspace(1, given["n"], 12).astype(int))
    script = "([given, ranks]) => LAWS.moments(LAWS.table(given), given, ranks)"
    found = opened.evaluate(script, [given, ranks.tolist()])
    expected = tr.risk(tr.Ranks.from_ranks(ranks, n=given["n"]), named(given), design(given))
    np.testing.assert_allclose([each["mean"] for each in found], expected.expected, atol=1e-9)
    np.testing.assert_allclose([each["variance"] for each in found], expected.variance, atol=1e-9)
    alone = "([given, ranks], table = LAWS.table(given)) => ranks.map(rank => LAWS.expectation(table, given, rank))"
    np.testing.assert_allclose(opened.evaluate(alone, [given, ranks.tolist()]), expected.expected, atol=1e-9)


def charts(opened: Opened) -> list[str]:
    return opened.page.locator("svg.chart").evaluate_all("all => all.map(one => one.outerHTML)")


CONTROLS: dict[str, Callable[[Any], None]] = {
    "metric": lambda page: page.locator("#metric").select_option("ndcg"),
    "design": lambda page: page.locator("#replace").select_option("true"),
    "correction": lambda page: page.locator("#correction").select_option("bv"),
    "n": lambda page: page.locator("#n-slider").press("ArrowLeft"),
    "m": lambda page: page.locator("#m").fill("37"),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_each_control_changes_the_charts(opened: Opened, control: str) -> None:
    before = charts(opened)
    assert len(before) == 4
    CONTROLS[control](opened.page)
    opened.page.keyboard.press("Tab")
    after = charts(opened)
    # what is read at a sampled rank depends neither on the design nor on n, unless it is corrected
    same = [2] if control in ("design", "n") else [3] if control == "correction" else []
    assert [at for at in range(4) if before[at] == after[at]] == same
    assert opened.messages == []


def test_k_and_gamma_matter_where_they_are_used(opened: Opened) -> None:
    k, gamma = (opened.page.locator(".setting", has=opened.page.locator(f"#{name}")) for name in ("k", "gamma"))
    assert [each.get_attribute("data-off") for each in (k, gamma)] == ["", ""]
    opened.page.locator("#metric").select_option("recall@k")
    opened.page.locator("#correction").select_option("bv")
    assert [each.get_attribute("data-off") for each in (k, gamma)] == [None, None]
    for name in ("k", "gamma"):
        before = charts(opened)
        opened.page.locator(f"#{name}-slider").press("PageUp")
        assert charts(opened)[0] != before[0]
    assert opened.messages == []


def test_settings_stay_possible(opened: Opened) -> None:
    opened.page.locator("#n").fill("20")
    opened.page.keyboard.press("Tab")
    assert [opened.page.locator(f"#{name}").input_value() for name in ("n", "m", "k")] == ["20", "19", "10"]
    opened.page.locator("#m").fill("1e9")
    opened.page.keyboard.press("Tab")
    assert opened.page.locator("#m").input_value() == "19"
    assert opened.messages == []


def row(opened: Opened, name: str) -> list[str]:
    found = opened.page.locator("tbody tr", has=opened.page.get_by_role("rowheader", name=name, exact=True))
    return [text.replace("−", "-") for text in found.locator("td").all_inner_texts()]


def test_the_papers_example(opened: Opened) -> None:
    """C is better than A on AP, and looks worse among 99 sampled candidates (Tables 1 and 2)."""
    opened.page.locator("#pair").select_option(label="The paper's: A and C")
    opened.page.locator("#m").fill("99")
    opened.page.keyboard.press("Tab")
    c = tr.risk(tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000), "ap", m=99)
    assert row(opened, "C") == ["5", f"{c.exact.mean():.4f}", f"{c.mean:.4f}", f"{c.standard_deviation:.4f}"]
    assert (round(c.mean, 3), round(c.standard_deviation, 3)) == (0.326, 0.051)  # published: 0.325, 0.051
    verdict = opened.page.locator(".verdict").inner_text()
    assert verdict.startswith(
        "C is better than A on AP (= RR) by 0.0914. With 99 sampled candidates it is behind by 0.3"
    )
    a = tr.risk(tr.Ranks.from_ranks([100] * 5, n=10_000), "ap", m=99)
    chance = norm.cdf((c.mean - a.mean) / np.hypot(a.standard_deviation, c.standard_deviation))
    assert verdict.endswith(f"on average, and ahead in about {100 * chance:.0f} % of all samples.")


def test_typed_ranks(opened: Opened) -> None:
    opened.page.locator("#n").fill("1000")
    opened.page.locator("#ranks-first").fill("1, 2 3;400")
    opened.page.locator("#ranks-second").fill("7")
    assert row(opened, "first")[:2] == ["4", f"{(1 + 1 / 2 + 1 / 3 + 1 / 400) / 4:.4f}"]
    assert opened.page.locator("#pair").input_value() == "typed"
    opened.page.locator("#ranks-second").fill("7 1001")
    assert opened.page.locator(".problem").inner_text() == "Ranks are whole numbers from 1 to n = 1000."
    opened.page.locator("#ranks-second").fill(" ")
    assert opened.page.locator(".problem").inner_text() == "Type at least one rank."
    opened.page.locator("#ranks-second").fill("9")
    assert opened.page.locator(".problem").inner_text() == ""
    assert opened.messages == []


def test_recommenders_of_ones_own(opened: Opened) -> None:
    assert opened.page.locator("#pair option:checked").text_content() == "Yours: </script> and tied"
    assert opened.page.locator("#n").input_value() == "500"
    assert row(opened, "</script>")[0] == "400"
    assert opened.page.locator("script").count() == 4
    assert opened.messages == []


def test_ones_own_recommenders_agree_with_the_library(opened: Opened) -> None:
    ranks = tr.Ranks.from_ranks(np.random.default_rng(2).integers(1, 500, 400), n=500)
    expected = tr.risk(ranks, "ap", m=100)
    found = opened.evaluate("study(pair[0])")
    assert found["exact"] == pytest.approx(expected.exact.mean(), abs=1e-12)
    assert found["expected"] == pytest.approx(expected.mean, abs=1e-9)
    assert found["deviation"] == pytest.approx(expected.standard_deviation, abs=1e-9)


def test_the_largest_setting_follows_soon(opened: Opened) -> None:
    largest = setting(20_000, 500, "ndcg@k", correction="bv", replace=True)
    script = "given => { const start = performance.now(); LAWS.table(given); return performance.now() - start }"
    took = opened.evaluate(script, largest)
    assert took < 10_000


@pytest.mark.parametrize("width", [320, 1200])
def test_it_fits_the_screen(visit: Visit, explorer: Path, width: int) -> None:
    opened = visit(explorer, viewport={"width": width, "height": 800})
    assert opened.evaluate("document.documentElement.scrollWidth") <= width


def test_the_command(tmp_path: Path) -> None:
    done = run_here("explore", "-o", tmp_path / "explore.html")
    assert (done.exit_code, done.output) == (0, f"written to '{tmp_path / 'explore.html'}'\n")
    tr.Ranks.from_ranks([1, 2], n=5).save(tmp_path / "a.parquet")
    sentence = refusal("explore", tmp_path / "a.parquet", "-o", tmp_path / "explore.html")
    assert sentence == "the explorer compares 2 to 6 recommenders, got 1."
