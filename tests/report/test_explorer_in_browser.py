"""The explorer in a real browser: its numbers against the library's, and what its controls change."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import norm

import truerank as tr
from tests.arrays import Floats, Ints
from tests.cli.running import refusal, run_here
from tests.report.conftest import Opened
from truerank.report import pages
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

Visit = Callable[..., Opened]
Setting = dict[str, Any]
FOLDER = Path(pages.__file__).parent
SIZES = [(10, 1), (10, 9), (50, 20), (200, 199), (1_000, 100), (3_000, 37)]
METRICS = ["auc", "ap", "ndcg", "recall@k", "precision@k", "ap@k", "ndcg@k"]
LAWS = {"without": HYPERGEOMETRIC, "replaced": BINOMIAL}
TEXTS = {"none": "", "rank": "~rank", "interpolated": "~rank(interpolate)", "cls": "~cls", "ls": "~ls"}


@pytest.fixture(scope="session")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "explore.html"
    rng = np.random.default_rng(2)
    tied = tr.Ranks(above=[3, 5, 9], tied=[2, 0, 4], n_candidates=[500, 500, 500])
    tr.write_explorer({"</script>": tr.Ranks.from_ranks(rng.integers(1, 500, 400), n=500), "tied": tied}, path)
    return path


@pytest.fixture
def opened(visit: Visit, explorer: Path) -> Opened:
    return visit(explorer, permissions=["clipboard-read", "clipboard-write"])


@pytest.fixture(scope="module")
def laws(browser: Browser) -> Iterator[Opened]:
    """An empty page that has imported the explorer's laws from their files; they keep no state."""
    with browser.new_context() as context:
        page = context.new_page()
        page.route("http://modules.test/*", serve)
        page.goto("http://modules.test/")
        page.add_script_tag(path=FOLDER / pages.LIBRARIES[0])
        page.evaluate("async () => { window.LAWS = {...await import('/designs.js'), ...await import('/laws.js')} }")
        yield Opened(page)


def serve(route: Route) -> None:
    name = route.request.url.rpartition("/")[2]
    if name:
        route.fulfill(path=FOLDER / "page" / name)
    else:
        route.fulfill(body="", content_type="text/html")


def setting(n: int, m: int, metric: str, **options: Any) -> Setting:
    common = {"k": 3, "hits": 2, "gamma": 0.1, "design": "without", "correction": "none"}
    return {"n": n, "m": m, "metric": metric} | common | options


def named(given: Setting) -> str:
    correction = TEXTS.get(given["correction"], f"~bv({given['gamma']:g})")
    return given["metric"].replace("@k", f"@{given['k']}") + correction


def design(given: Setting) -> tr.UniformSampling:
    return tr.UniformSampling(given["m"], given["design"] == "replaced")


def ranks_of(given: Setting) -> list[int]:
    return np.unique(np.geomspace(1, given["n"], 12).astype(int)).tolist()


NO_FRAMES = """
const [frame, held] = [requestAnimationFrame, []];
window.requestAnimationFrame = draw => held.push(draw);
window.showFrames = () => { window.requestAnimationFrame = frame; held.forEach(draw => frame(draw)) };
"""
ALL_OF_EACH = """cases => JSON.stringify(cases.map(([given, ranks]) => {
  const table = LAWS.correctionTable(given);
  return {
    table: [...table],
    moments: LAWS.moments(table, given, ranks),
    means: given.design === "inverse" ? null : ranks.map(rank => LAWS.expectation(table, given, rank)),
    laws: ranks.map(rank => LAWS.DESIGNS[given.design].law(rank - 1, given)).map(({first, p}) => ({first, p: [...p]})),
    draws: ranks.map(rank => LAWS.draws(given, rank)),
  };
}))"""


def read(laws: Opened, settings: list[Setting], ranks: list[list[int]] | None = None) -> list[dict[str, Any]]:
    """Return what the page computes from each of the settings, at once and as text: Playwright is slow with numbers."""
    cases = zip(settings, ranks or map(ranks_of, settings), strict=True)
    found: list[dict[str, Any]] = json.loads(laws.evaluate(ALL_OF_EACH, list(cases)))
    return found


def chances(law: dict[str, Any], size: int) -> Floats:
    found = np.zeros(size)
    found[law["first"] : law["first"] + len(law["p"])] = law["p"]
    return found


@pytest.mark.parametrize("name", LAWS)
def test_laws(laws: Opened, name: str) -> None:
    settings = [setting(n, m, "ap", design=name) for n, m in SIZES]
    above = [sorted({0, 1, n // 3, n - 2, n - 1}) for n, _ in SIZES]
    for (n, m), own, found in zip(
        SIZES, above, read(laws, settings, [[g + 1 for g in own] for own in above]), strict=True
    ):
        for g, law in zip(own, found["laws"], strict=True):
            expected = LAWS[name].pmf(np.arange(m + 1), g, m, n - 1)
            np.testing.assert_allclose(chances(law, m + 1), expected, rtol=0, atol=1e-13)


def each_size_and_metric(**options: Any) -> list[Setting]:
    return [setting(n, m, metric, **options) for (n, m), metric in product(SIZES, METRICS)]


@pytest.mark.parametrize("design_name", LAWS)
def test_expected_metrics_and_variances(laws: Opened, design_name: str) -> None:
    settings = each_size_and_metric(design=design_name)
    for given, found in zip(settings, read(laws, settings), strict=True):
        check_moments(given, found)


@pytest.mark.parametrize("design_name", LAWS)
@pytest.mark.parametrize(
    ("correction", "gamma"), [("rank", 1.0), ("interpolated", 1.0), ("bv", 1.0), ("bv", 0.1), ("bv", 0.001)]
)
def test_corrections(laws: Opened, design_name: str, correction: str, gamma: float) -> None:
    settings = each_size_and_metric(design=design_name, correction=correction, gamma=gamma)
    for given, found in zip(settings, read(laws, settings), strict=True):
        np.testing.assert_allclose(found["table"], library_table(given), rtol=0, atol=1e-9)
        check_moments(given, found)


@pytest.mark.parametrize("design_name", LAWS)
def test_constrained_least_squares(laws: Opened, design_name: str) -> None:
    settings = each_size_and_metric(design=design_name, correction="cls")
    for given, found in zip(settings, read(laws, settings), strict=True):
        # of as many draws with replacement as there are candidates, tables that differ in the fourth digit fit alike
        tolerance = 1e-3 if (given["n"], design_name) == (200, "replaced") else 1e-9
        np.testing.assert_allclose(found["table"], library_table(given), rtol=0, atol=tolerance)
        check_moments(given, found)


def test_least_squares(laws: Opened) -> None:
    settings = each_size_and_metric(correction="ls")
    for given, found in zip(settings, read(laws, settings), strict=True):
        expected = library_table(given)
        # tables have values of up to 10,000, which cancel in the mean
        largest = max(1, np.abs(expected).max())
        np.testing.assert_allclose(found["table"], expected, rtol=0, atol=1e-9 * largest)
        check_moments(given, found, scale=largest**2)


@pytest.mark.parametrize("hits", [1, 2, 5])
def test_inverse_sampling(laws: Opened, hits: int) -> None:
    """The law against counted orders, the values against the library's, and no bias."""
    for n, metric in product([10, 50, 1_000], ["ap", "auc"] if hits > 1 else ["ap"]):
        given = setting(n, 1, metric, design="inverse", hits=hits, correction="unbiased")
        ranks, (found,) = ranks_of(given), read(laws, [given])
        exact = tr.values(tr.Ranks.from_ranks(ranks, n=n), metric)
        np.testing.assert_allclose([each["mean"] for each in found["moments"]], exact, rtol=0, atol=1e-9)
        values = np.array(found["table"])
        for at, rank in enumerate(ranks):
            draws, likely = stopping_law(rank - 1, n - 1, hits)
            places = draws - 1 if rank > hits else np.array([n + rank - 2])
            law = chances(found["laws"][at], n - 1 + hits)
            np.testing.assert_allclose(law[places], likely, rtol=0, atol=1e-13)
            readings = unbiased(metric, draws, min(hits, rank - 1), n, hits)
            np.testing.assert_allclose(values[places], readings, rtol=0, atol=1e-9)
            variance = likely @ (readings - likely @ readings) ** 2
            assert found["moments"][at]["variance"] == pytest.approx(variance, abs=1e-9)
            assert found["draws"][at] == pytest.approx(likely @ draws)


def stopping_law(g: int, n_irrelevant: int, hits: int) -> tuple[Ints, Floats]:
    """Return the possible numbers of draws until `hits` of the g candidates above were drawn, and their chances."""
    if g < hits:
        return np.array([n_irrelevant]), np.ones(1)
    draws = range(hits, n_irrelevant - g + hits + 1)
    ways = [math.comb(t - 1, hits - 1) * math.comb(n_irrelevant - t, g - hits) for t in draws]
    return np.array(draws), np.array([way / math.comb(n_irrelevant, g) for way in ways])


def unbiased(metric: str, draws: Ints, above: int, n: int, hits: int) -> Floats:
    """Return what the library reads after so many draws."""
    ranks = tr.Ranks(
        above=np.full(draws.size, above),
        n_candidates=draws + 1,
        sample=tr.Sample(tr.InverseSampling(hits), n, draws),
    )
    return tr.values(ranks, f"{metric}~unbiased")


def library_table(given: Setting) -> Floats:
    return tr.estimators.correction_table(named(given), design(given), n=given["n"])


def check_moments(given: Setting, found: dict[str, Any], scale: float = 1) -> None:
    """Compare expectation and variance at some ranks with those of the library."""
    exact = tr.Ranks.from_ranks(ranks_of(given), n=given["n"])
    expected, moments = tr.risk(exact, named(given), design(given)), found["moments"]
    np.testing.assert_allclose([each["mean"] for each in moments], expected.expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose([each["variance"] for each in moments], expected.variance, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(found["means"], expected.expected, rtol=0, atol=1e-9)


def charts(opened: Opened) -> list[str]:
    """Return the charts by rank, of errors, of what is read, and by m, as they are drawn."""
    opened.settle()
    by_m, *others = opened.page.locator("svg.chart").evaluate_all("all => all.map(one => one.outerHTML)")
    return [*others, by_m]


def test_charts_are_stale_until_they_are_drawn(browser: Browser, explorer: Path) -> None:
    """They are drawn in a frame after the page has loaded, which a busy computer may show late."""
    with browser.new_context() as context:
        opened = Opened(context.new_page())
        opened.page.add_init_script(NO_FRAMES)
        opened.page.goto(explorer.as_uri())
        assert [opened.page.locator(each).count() for each in ("svg.chart", ".canvas[data-stale]")] == [0, 4]
        opened.evaluate("showFrames()")
        assert len(charts(opened)) == 4


CONTROLS: dict[str, Callable[[Any], None]] = {
    "metric": lambda page: page.locator("#metric").select_option("ndcg"),
    "design": lambda page: page.locator("#design").select_option("replaced"),
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


@pytest.mark.parametrize("correction", ["rank", "interpolated", "bv", "cls", "ls"])
def test_each_correction_changes_what_is_read(opened: Opened, correction: str) -> None:
    before = charts(opened)
    opened.page.locator("#correction").select_option(correction)
    assert [first != second for first, second in zip(before, charts(opened), strict=True)] == [True, True, True, False]
    assert opened.messages == []


def enabled(opened: Opened, select: str) -> list[str]:
    return opened.page.locator(f"#{select} option:enabled").evaluate_all("all => all.map(one => one.value)")


def test_the_design_decides_what_can_be_chosen(opened: Opened) -> None:
    uniform = ["none", "rank", "interpolated", "bv", "cls"]
    assert enabled(opened, "correction") == [*uniform, "ls"]
    opened.page.locator("#correction").select_option("ls")
    opened.page.locator("#metric").select_option("ndcg@k")
    opened.page.locator("#design").select_option("replaced")
    assert enabled(opened, "correction") == uniform
    assert opened.page.locator("#correction").input_value() == "none"
    opened.page.locator("#design").select_option("inverse")
    assert (enabled(opened, "correction"), enabled(opened, "metric")) == (["unbiased"], ["ap", "auc"])
    opened.page.locator("#metric").select_option("auc")
    opened.page.locator("#hits").fill("1")
    opened.page.keyboard.press("Tab")
    assert (opened.page.locator("#metric").input_value(), enabled(opened, "metric")) == ("ap", ["ap"])
    assert opened.messages == []


def test_inverse_sampling_of_the_papers_example(opened: Opened) -> None:
    """It has no bias, and its deviation is that of many samples that the library draws."""
    opened.page.locator("#pair").select_option(label="The paper's: A and C")
    opened.page.locator("#design").select_option("inverse")
    c = tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000)
    samples = [tr.InverseSampling(2).draw(c, rng=seed) for seed in range(400)]
    found = copied(opened, "C")
    assert found["expected, hits = 2, ~unbiased"] == pytest.approx(tr.estimate(c, "ap").mean, abs=1e-9)
    deviation = np.std([tr.values(sample, "ap~unbiased").mean() for sample in samples])
    assert found["standard deviation"] == pytest.approx(deviation, rel=5 / np.sqrt(2 * 400))
    drawn = np.array([sample.n_scored.mean() for sample in samples])
    assert found["draws per instance"] == pytest.approx(drawn.mean(), abs=5 * drawn.std() / 20)
    before = charts(opened)
    opened.page.locator("#hits-slider").press("PageUp")
    # the expectation is exact for any number of hits, and the last chart is about uniform sampling
    assert [first != second for first, second in zip(before, charts(opened), strict=True)] == [False, True, True, False]
    verdict = opened.page.locator(".verdict").inner_text()
    assert "With candidates drawn until 3 stand above the relevant item it is ahead by 0.09" in verdict
    assert opened.messages == []


def test_switches_of_a_chart_stay_as_the_settings_change(opened: Opened) -> None:
    figure = opened.page.locator("figure").nth(1)
    figure.get_by_role("button", name="x logarithmic").click()
    figure.get_by_role("button", name="Numbers").click()
    figure.locator(".chip", has_text="exact").click()
    before = figure.locator(".numbers").inner_text()
    opened.page.locator("#n-slider").press("PageDown")
    opened.settle()
    assert [button.get_attribute("aria-pressed") for button in figure.locator(".tools button[aria-pressed]").all()] == [
        "false",
        "true",
    ]
    assert figure.locator(".numbers").inner_text() != before
    assert figure.locator("[data-part=line] path").count() == 1
    assert opened.messages == []


def test_sliders_and_numbers_agree(opened: Opened) -> None:
    for name in ("n", "m", "hits", "k", "gamma"):
        slider, number = opened.page.locator(f"#{name}-slider"), opened.page.locator(f"#{name}")
        slider.press("Home")
        lowest = number.get_attribute("min")
        assert (number.input_value(), slider.get_attribute("aria-valuetext")) == (lowest, lowest)
        number.fill("0.5" if name == "gamma" else "3")
        opened.page.keyboard.press("Tab")
        assert slider.get_attribute("aria-valuetext") == number.input_value()
        assert 0 < int(slider.input_value()) < 1000
    assert opened.messages == []


def test_settings_stay_possible(opened: Opened) -> None:
    opened.page.locator("#n").fill("20")
    opened.page.keyboard.press("Tab")
    assert [opened.page.locator(f"#{name}").input_value() for name in ("n", "m", "k")] == ["20", "19", "10"]
    assert problem(opened, "m") == "m is at most n − 1 = 19."
    opened.page.locator("#m").fill("1e9")
    opened.page.keyboard.press("Tab")
    assert opened.page.locator("#m").input_value() == "19"
    assert opened.messages == []


def problem(opened: Opened, name: str) -> str:
    setting = opened.page.locator(".setting", has=opened.page.locator(f"#{name}"))
    return str(setting.locator(".problem").text_content())


@pytest.mark.parametrize(
    ("name", "typed", "kept", "message"),
    [
        ("m", "1000000", "499", "m is at most n − 1 = 499."),
        ("n", "1", "2", "n is a whole number from 2 to 20,000, got 1."),
        ("k", "2.5", "3", "k is a whole number from 1 to 1,000, got 2.5."),
        ("k", "", "10", "k is a whole number from 1 to 1,000, got nothing."),
        ("gamma", "7", "1", "gamma is a number from 0.001 to 1, got 7."),
    ],
)
def test_values_out_of_range_are_named(opened: Opened, name: str, typed: str, kept: str, message: str) -> None:
    opened.page.locator(f"#{name}").fill(typed)
    opened.page.keyboard.press("Tab")
    assert (opened.page.locator(f"#{name}").input_value(), problem(opened, name)) == (kept, message)
    opened.page.locator("#metric").select_option("auc")
    assert problem(opened, name) == ""


def test_the_story(visit: Visit, tmp_path: Path) -> None:
    """The conclusion comes first, then three steps; what is not on the page comes last."""
    tr.write_explorer(None, tmp_path / "explore.html")
    opened = visit(tmp_path / "explore.html")
    assert opened.page.locator("h2").all_inner_texts() == [
        "1. A beats C", "2. Move m", "3. Correct it", "What is not on this page",
    ]  # fmt: skip
    assert opened.page.locator("header .verdict").inner_text().startswith("C is better than A on AP")
    opened.page.locator("#m").fill("500")
    opened.page.keyboard.press("Tab")
    assert opened.page.locator("h2").first.inner_text() == "1. C beats A"
    assert opened.page.locator("section .finding").inner_text() == opened.page.locator(".verdict").inner_text()


def test_the_view_is_in_the_address(visit: Visit, explorer: Path, opened: Opened) -> None:
    opened.page.locator("#pair").select_option(label="The paper's: A and C")
    opened.page.locator("#metric").select_option("recall@k")
    opened.page.locator("#m").fill("37")
    opened.page.keyboard.press("Tab")
    again = visit(explorer)
    again.page.goto(f"{explorer.as_uri()}{opened.evaluate('location.hash')}")
    again.page.reload()
    assert again.page.locator(".verdict").inner_text() == opened.page.locator(".verdict").inner_text()
    for name in ("metric", "m", "n", "k", "pair"):
        assert again.page.locator(f"#{name}").input_value() == opened.page.locator(f"#{name}").input_value()
    again.page.goto(f"{explorer.as_uri()}#first=1+2&second=7&n=50&m=900")
    again.page.reload()
    assert row(again, "first")[:2] == ["2", "0.7500"]
    assert problem(again, "m") == "m is at most n − 1 = 49."
    assert again.messages == []


def copied(opened: Opened, name: str) -> dict[str, float]:
    """Return the numbers of a recommender with all digits, by their columns."""
    opened.page.locator(".table").get_by_role("button", name="Copy").click()
    opened.page.get_by_role("button", name="Copied").wait_for()
    (_, *columns), *rows = [line.split("\t") for line in opened.evaluate("navigator.clipboard.readText()").split("\n")]
    numbers = {name: map(float, numbers) for name, *numbers in rows}
    return dict(zip(columns, numbers[name], strict=True))


def row(opened: Opened, name: str) -> list[str]:
    found = opened.page.locator("tbody tr", has=opened.page.get_by_role("rowheader", name=name, exact=True))
    return [text.replace("−", "-") for text in found.locator("td").all_inner_texts()]


def test_the_papers_example(opened: Opened) -> None:
    """C is better than A on AP, and looks worse among 99 sampled candidates (Tables 1 and 2)."""
    opened.page.locator("#pair").select_option(label="The paper's: A and C")
    opened.page.locator("#m").fill("99")
    opened.page.keyboard.press("Tab")
    c = tr.risk(tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000), "ap", design=99)
    assert row(opened, "C") == ["5", f"{c.exact.mean():.4f}", f"{c.mean:.4f}", f"{c.standard_deviation:.4f}", "99"]
    assert (round(c.mean, 3), round(c.standard_deviation, 3)) == (0.326, 0.051)  # published: 0.325, 0.051
    verdict = opened.page.locator(".verdict").inner_text()
    assert verdict.startswith(
        "C is better than A on AP (= RR) by 0.0914. With 99 sampled candidates it is behind by 0.3"
    )
    a = tr.risk(tr.Ranks.from_ranks([100] * 5, n=10_000), "ap", design=99)
    chance = norm.cdf((c.mean - a.mean) / np.hypot(a.standard_deviation, c.standard_deviation))
    assert verdict.endswith(f"on average, and ahead in about {100 * chance:.0f} % of all samples.")


def test_typed_ranks(opened: Opened) -> None:
    opened.page.locator("#n").fill("1000")
    opened.page.locator("summary").click()
    opened.page.locator("#ranks-first").fill("1, 2 3;400")
    opened.page.locator("#ranks-second").fill("7")
    assert row(opened, "first")[:2] == ["4", f"{(1 + 1 / 2 + 1 / 3 + 1 / 400) / 4:.4f}"]
    assert opened.page.locator("#pair").input_value() == "typed"
    opened.page.locator("#ranks-second").fill("7 1001")
    assert opened.page.locator("#pair-problem").text_content() == "Ranks are whole numbers from 1 to n = 1000."
    opened.page.locator("#ranks-second").fill(" ")
    assert opened.page.locator("#pair-problem").text_content() == "Type at least one rank."
    opened.page.locator("#ranks-second").fill("9")
    assert opened.page.locator("#pair-problem").text_content() == ""
    assert opened.messages == []


def test_recommenders_of_ones_own(opened: Opened) -> None:
    assert opened.page.locator("#pair option:checked").text_content() == "Yours: </script> and tied"
    assert opened.page.locator("#n").input_value() == "500"
    assert row(opened, "</script>")[0] == "400"
    assert opened.page.locator("script").count() == 4
    assert opened.messages == []


def test_ones_own_recommenders_agree_with_the_library(opened: Opened) -> None:
    ranks = tr.Ranks.from_ranks(np.random.default_rng(2).integers(1, 500, 400), n=500)
    expected = tr.risk(ranks, "ap", design=100)
    found = copied(opened, "</script>")
    assert found["exact"] == pytest.approx(expected.exact.mean(), abs=1e-12)
    assert found["expected, m = 100"] == pytest.approx(expected.mean, abs=1e-9)
    assert found["standard deviation"] == pytest.approx(expected.standard_deviation, abs=1e-9)


@pytest.mark.parametrize(
    ("design_name", "correction"), [("replaced", "bv"), ("without", "cls"), ("without", "ls"), ("inverse", "unbiased")]
)
def test_the_largest_setting(laws: Opened, design_name: str, correction: str) -> None:
    largest = setting(20_000, 500, "ap", design=design_name, correction=correction)
    found = laws.evaluate("given => [...LAWS.correctionTable(given)]", largest)
    assert len(found) > 100
    assert np.isfinite(found).all()


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
