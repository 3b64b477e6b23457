"""The report in a real browser: what it draws, what its controls change, and what its policy forbids."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import truerank as tr
from tests.report.conftest import Opened
from truerank.evaluation.differences import conclusion
from truerank.papers.krichene_rendle_2020 import toy_tables as toy
from truerank.papers.krichene_rendle_2020.movielens import Study, embedded
from truerank.papers.krichene_rendle_2020.reproduction import write_paper_report
from truerank.papers.krichene_rendle_2020.toy_tables import PublishedTable
from truerank.report import pages

FOLDER = Path(pages.__file__).parent
ALERT = "<script>alert(1)</script>"
END = "</script>"
METRICS = ["ndcg@10", "recall@10", "auc"]
CHARTS = 10
AXE = Path(__file__).parents[2] / ".venv/axe/node_modules/axe-core/axe.min.js"
Visit = Callable[..., Opened]


@pytest.fixture(scope="session")
def split() -> tr.Split:
    rng = np.random.default_rng(5)
    held = rng.integers(0, 60, 200)
    lists = [np.setdiff1d(rng.choice(60, 1 + user % 20, replace=False), held[user]).tolist() for user in range(200)]
    train = tr.Interactions.of(lists, "train", n_users=200, n_items=60)
    return tr.Split(train, tr.Interactions.of([[item] for item in held.tolist()], "test", n_users=200, n_items=60))


@pytest.fixture(scope="session")
def ranks(split: tr.Split) -> dict[str, tr.Ranks]:
    """Two recommenders with hostile names and one with ties; the first is better at the top only."""
    rng = np.random.default_rng(6)
    scores = rng.random((200, 60))
    users, items = np.arange(200), split.test.items
    top, middle, tied = scores.copy(), scores.copy(), np.round(scores, 1)
    top[users, items] = np.where(users % 3 == 0, 2.0, 0.1)
    middle[users, items] = 0.7
    return {name: tr.rank(made, split) for name, made in ((ALERT, top), (END, middle), ("ties & co", tied))}


@pytest.fixture(scope="session")
def report(ranks: dict[str, tr.Ranks], split: tr.Split, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    tr.write_report(ranks, path, split=split, metrics=METRICS, design=20, title=f"{ALERT} & more")
    return path


def section(opened: Opened, title: str) -> Any:
    return opened.page.locator("section", has=opened.page.get_by_role("heading", name=title, exact=True))


def choose(opened: Opened, metric: str) -> None:
    opened.page.locator("#metric").select_option(metric)
    opened.settle()


def cells(table: Any) -> list[list[str]]:
    return table.locator("tbody tr").evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.innerText))")


def test_everything_is_drawn_without_a_word_on_the_console(visit: Visit, report: Path) -> None:
    opened = visit(report)
    titles = opened.page.locator("h2").all_inner_texts()
    assert titles == [
        "Metrics", "Comparison", "Sampled candidates", "Where users differ", "Groups", "Rank distribution",
        "Weight of each rank", "Ties", "How it was computed",
    ]  # fmt: skip
    drawn = opened.page.locator("svg.chart").evaluate_all(
        "all => all.map(one => one.querySelectorAll('path, rect, circle').length)"
    )
    assert len(drawn) == CHARTS
    assert min(drawn) >= 2
    assert opened.messages == []
    assert opened.requests == [report.as_uri()]


def test_names_are_text(visit: Visit, report: Path) -> None:
    opened = visit(report)
    assert opened.page.title() == f"{ALERT} & more"
    assert opened.page.locator("h1").inner_text() == f"{ALERT} & more"
    names = [row[0] for row in cells(section(opened, "Metrics").locator("table"))]
    assert sorted(names) == [END, ALERT, "ties & co"]
    assert opened.page.locator(".toolbar .chip").all_inner_texts() == names
    assert opened.page.locator("script").count() == 4
    assert opened.messages == []


def test_the_libraries_are_the_only_globals(visit: Visit, report: Path, tmp_path: Path) -> None:
    tr.write_explorer(None, tmp_path / "explore.html")
    (tmp_path / "empty.html").touch()
    before = visit(tmp_path / "empty.html").global_names()
    for path in (report, tmp_path / "explore.html"):
        assert visit(path).global_names() - before == {"d3", "Plot"}


ATTACKS = [
    (
        "script-src-elem",
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.attacked = true'}))",
    ),
    (
        "script-src-attr",
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.attacked = true\">')",
    ),
    (
        "script-src-elem",
        "document.body.append(Object.assign(document.createElement('script'), {src: 'http://127.0.0.1:9/attack.js'}))",
    ),
    (
        "frame-src",
        "document.body.append(Object.assign(document.createElement('iframe'), {src: 'http://127.0.0.1:9/'}))",
    ),
    ("connect-src", "fetch('http://127.0.0.1:9/data', {method: 'POST', body: 'ranks'}).catch(() => {})"),
    (
        "style-src-elem",
        "document.head.append(Object.assign(document.createElement('style'), {textContent: 'body { display: none }'}))",
    ),
]
"""What the policy names as the reason to stop a script, and the script."""


def test_the_policy_stops_what_it_does_not_know(visit: Visit, report: Path) -> None:
    opened = visit(report)
    opened.evaluate("addEventListener('securitypolicyviolation', e => window.stopped.push(e.violatedDirective))")
    for reason, attack in ATTACKS:
        opened.evaluate(f"() => {{ window.stopped = []; {attack} }}")
        opened.wait_until(f"stopped.includes('{reason}')")
        assert opened.evaluate("window.attacked") is None, attack
        assert opened.evaluate("getComputedStyle(document.body).display") == "block", attack
        assert opened.requests == [report.as_uri()], attack


def test_the_numbers_of_the_table_are_those_of_the_library(
    visit: Visit, report: Path, ranks: dict[str, tr.Ranks]
) -> None:
    rows = cells(section(visit(report), "Metrics").locator("table"))
    for name, *columns, count in rows:
        assert int(count) == len(ranks[name])
        for metric, text in zip(METRICS, columns, strict=True):
            found = tr.estimate(ranks[name], metric)
            low, high = found.confidence_interval()
            assert text.split() == [f"{found.mean:.4f}", f"{low:.4f}", "to", f"{high:.4f}"]
    means = [tr.estimate(ranks[name], METRICS[0]).mean for name, *_ in rows]
    assert means == sorted(means, reverse=True)


def test_another_metric_is_shown_in_every_section(visit: Visit, report: Path) -> None:
    opened = visit(report)
    titles = ["Metrics", "Comparison", "Groups", "Sampled candidates", "Weight of each rank"]

    def labels(metric: str) -> list[bool]:
        return [metric in section(opened, title).locator("svg.chart").first.text_content() for title in titles]

    ties = section(opened, "Ties").locator("table").inner_text()
    assert labels("NDCG@10") == [True] * 5
    choose(opened, "recall@10")
    assert labels("Recall@10") == [True] * 5
    assert section(opened, "Ties").locator("table").inner_text() != ties
    assert opened.messages == []


def test_the_sentence_on_the_comparison_follows_the_metric(
    visit: Visit, report: Path, ranks: dict[str, tr.Ranks]
) -> None:
    opened = visit(report)
    result = tr.compare(ranks, METRICS)
    for metric in METRICS:
        choose(opened, metric)
        told = section(opened, "Comparison").locator("p").all_inner_texts()
        assert any(sentence.endswith(conclusion(result.of(metric))) for sentence in told)
        findings = [row[-1] for row in cells(section(opened, "Comparison").locator("table"))]
        assert findings == [each.verdict for each in result.of(metric)]
        assert any("adjusted for 9 tests (3 pairs, 3 metrics)" in sentence for sentence in told)
    assert conclusion(result.of("auc")) != conclusion(result.of("recall@10"))


def test_a_value_outside_its_interval_is_marked(visit: Visit, tmp_path: Path) -> None:
    places = {"A": np.full(2_000, 15), "B": np.where(np.arange(2_000) < 600, 1, 1_000)}
    sampled = {
        name: tr.UniformSampling(100).draw(tr.Ranks.from_ranks(own, n=1_001), rng=1) for name, own in places.items()
    }
    tr.write_report(sampled, tmp_path / "report.html", metrics=["ap~bv(1)", "auc"])
    opened = visit(tmp_path / "report.html")
    marked = [["outside" in cell for cell in row] for row in cells(section(opened, "Metrics").locator("table"))]
    expected = []
    for one in sampled.values():
        estimate = tr.estimate(one, "ap~bv(1)")
        low, high = estimate.confidence_interval()
        expected.append([False, not low <= estimate.mean <= high, False, False])
    assert marked == expected
    assert any(row[1] for row in expected)
    fills = section(opened, "Comparison").locator("[data-part=dot] path")
    assert fills.evaluate_all("all => all.map(one => one.getAttribute('fill'))") == ["var(--paper)"]
    choose(opened, "auc")
    assert fills.evaluate_all("all => all.map(one => one.getAttribute('fill'))") != ["var(--paper)"]
    assert opened.messages == []


def test_a_hidden_recommender_is_hidden_everywhere(visit: Visit, report: Path) -> None:
    opened = visit(report)
    sampled = section(opened, "Sampled candidates")
    lines = sampled.locator("[data-part=line] path")
    assert (lines.count(), len(cells(section(opened, "Comparison").locator("table")))) == (3, 3)
    chip = opened.page.locator(".toolbar .chip", has_text="alert")
    chip.press("Enter")
    opened.settle()
    assert chip.get_attribute("aria-pressed") == "false"
    assert (lines.count(), len(cells(section(opened, "Comparison").locator("table")))) == (2, 1)
    assert sorted(row[0] for row in cells(section(opened, "Metrics").locator("table"))) == [END, "ties & co"]
    opened.page.get_by_role("button", name="Show all").click()
    opened.settle()
    assert chip.get_attribute("aria-pressed") == "true"
    assert lines.count() == 3
    assert opened.messages == []


def test_all_recommenders_can_be_hidden(visit: Visit, report: Path) -> None:
    opened = visit(report)
    before = opened.page.locator("main").inner_text()
    chips = opened.page.locator(".toolbar .chip").all()
    for chip in chips:
        chip.press("Enter")
    opened.settle()
    assert cells(section(opened, "Metrics").locator("table")) == []
    assert section(opened, "Sampled candidates").locator("[data-part=line] path").count() == 0
    for chip in chips:
        chip.press("Enter")
    opened.settle()
    assert opened.page.locator("main").inner_text() == before
    assert opened.messages == []


def test_axes_become_linear_and_logarithmic(visit: Visit, report: Path) -> None:
    sampled = section(visit(report), "Sampled candidates")
    path = sampled.locator("[data-part=line] path").first

    def drawn() -> str:
        return str(path.get_attribute("d"))

    differences = drawn()
    assert sampled.get_by_role("button", name="y logarithmic").is_disabled(), "differences may be negative"
    sampled.get_by_role("button", name="differences").click()
    start = drawn()
    assert start != differences
    sampled.get_by_role("button", name="x logarithmic").click()
    linear = drawn()
    sampled.get_by_role("button", name="y logarithmic").click()
    both = drawn()
    assert len({start, linear, both}) == 3
    sampled.get_by_role("button", name="y logarithmic").click()
    sampled.get_by_role("button", name="x logarithmic").click()
    assert drawn() == start


def test_tables_are_sorted_by_what_is_clicked(visit: Visit, report: Path, ranks: dict[str, tr.Ranks]) -> None:
    table = section(visit(report), "Metrics").locator("table")
    means = {name: tr.estimate(one, "auc").mean for name, one in ranks.items()}
    best_first = sorted(means, key=lambda name: -means[name])
    header = table.locator("thead th", has_text="AUC")
    header.get_by_role("button").press("Enter")
    assert (header.get_attribute("aria-sort"), [row[0] for row in cells(table)]) == ("descending", best_first)
    assert header.get_by_role("button").evaluate("button => button === document.activeElement")
    header.get_by_role("button").press("Enter")
    assert (header.get_attribute("aria-sort"), [row[0] for row in cells(table)]) == ("ascending", best_first[::-1])


def test_a_chart_is_copied_as_numbers_with_all_digits(visit: Visit, report: Path, ranks: dict[str, tr.Ranks]) -> None:
    opened = visit(report, permissions=["clipboard-read", "clipboard-write"])
    sampled = section(opened, "Sampled candidates")
    sampled.get_by_role("button", name="Numbers").click()
    sampled.get_by_role("button", name="Copy").click()
    sampled.get_by_role("button", name="Copied").wait_for()
    header, *lines = [line.split("\t") for line in opened.evaluate("navigator.clipboard.readText()").split("\n")]
    assert header == ["sampled candidates m", *ranks]
    *curves, (word, *exact) = lines
    sizes = [int(size) for size, *_ in curves]
    expected = tr.consistency(ranks, "ndcg@10", sizes=sizes)
    for place, name in enumerate(ranks):
        np.testing.assert_allclose([float(line[place + 1]) for line in curves], expected.curves[name], rtol=1e-12)
    assert word == "exact"
    np.testing.assert_allclose([float(text) for text in exact], list(expected.exact.values()), rtol=1e-12)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_table_is_copied_with_all_digits(
    visit: Visit, report: Path, ranks: dict[str, tr.Ranks], allowed: bool
) -> None:
    """Also where the page may not write to the clipboard, as in some browsers on a local file."""
    opened = visit(report, permissions=["clipboard-read", "clipboard-write"])
    if not allowed:
        opened.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')) }")
    metrics = section(opened, "Metrics")
    metrics.locator(".table").get_by_role("button", name="Copy").click()
    metrics.get_by_role("button", name="Copied").wait_for()
    header, *lines = [line.split("\t") for line in opened.evaluate("navigator.clipboard.readText()").split("\n")]
    assert header[:4] == ["recommender", "NDCG@10", "NDCG@10 low", "NDCG@10 high"]
    for name, *numbers in lines:
        found = tr.estimate(ranks[name], METRICS[0])
        expected = [found.mean, *found.confidence_interval()]
        np.testing.assert_allclose([float(text) for text in numbers[:3]], expected, rtol=1e-12)
    assert opened.messages == []


def test_every_chart_shows_and_hides_its_numbers(visit: Visit, report: Path) -> None:
    opened = visit(report)
    figures = opened.page.locator("figure")
    assert figures.count() == CHARTS
    for figure in figures.all():
        button, numbers = figure.get_by_role("button", name="Numbers"), figure.locator(".numbers")
        assert numbers.is_hidden()
        button.press("Enter")
        assert (button.get_attribute("aria-pressed"), len(cells(numbers.locator("table"))) > 1) == ("true", True)
        button.press("Enter")
        assert numbers.is_hidden()
    assert opened.messages == []


def test_a_curve_is_hidden_by_the_legend_of_its_chart(visit: Visit, report: Path) -> None:
    opened = visit(report)
    weights = section(opened, "Weight of each rank")
    lines = weights.locator("[data-part=line] path")
    count = lines.count()
    weights.locator(".chip", has_text="exact").click()
    assert lines.count() == count - 1
    weights.locator(".canvas").focus()
    opened.page.keyboard.press("ArrowRight")
    assert "exact" not in weights.locator(".readout").inner_text()
    weights.locator(".chip", has_text="exact").click()
    assert lines.count() == count
    assert opened.messages == []


def test_the_contents_lead_to_the_sections(visit: Visit, report: Path) -> None:
    opened = visit(report)
    for link in opened.page.locator("nav a").all():
        link.click()
        place = section(opened, link.inner_text()).evaluate("one => one.getBoundingClientRect().top")
        end = opened.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 2")
        assert end or abs(place) < 100


def test_charts_follow_the_width_of_the_window(visit: Visit, report: Path) -> None:
    opened = visit(report)
    script = "all => all.map(one => +one.getAttribute('width'))"
    wide = opened.page.locator("svg.chart").evaluate_all(script)
    opened.page.set_viewport_size({"width": 500, "height": 800})
    opened.wait_until("[...document.querySelectorAll('svg.chart')].every(one => +one.getAttribute('width') < 500)")
    assert max(wide) > 800
    assert opened.messages == []


def test_values_are_read_by_pointer_and_by_keyboard(visit: Visit, report: Path, ranks: dict[str, tr.Ranks]) -> None:
    opened = visit(report)
    bars = section(opened, "Rank distribution")
    readout = bars.locator(".readout")
    assert readout.is_hidden()
    bars.locator(".canvas").focus()
    opened.page.keyboard.press("ArrowRight")
    first = [round(200 * tr.estimate(one, "recall@1").mean, 1) for one in ranks.values()]
    assert sorted(float(text) for text in readout.locator("b").all_inner_texts()) == sorted(first)
    assert readout.locator("strong").inner_text() == "rank: 1"
    opened.page.keyboard.press("ArrowRight")
    assert readout.locator("strong").inner_text() == "rank: 2–3"
    opened.page.keyboard.press("Escape")
    assert readout.is_hidden()
    dots = section(opened, "Metrics")
    dots.locator("[data-part=dot] path").first.hover()
    best = max(tr.estimate(one, "ndcg@10").mean for one in ranks.values())
    assert dots.locator(".readout b").first.inner_text() == f"{best:.4f}"
    lines = section(opened, "Sampled candidates")
    lines.get_by_role("button", name="differences").click()
    lines.locator(".canvas").hover(position={"x": 300, "y": 100})
    size = int(lines.locator(".readout strong").inner_text().removeprefix("sampled candidates m: "))
    curves = tr.consistency(ranks, "ndcg@10", sizes=[size]).curves.values()
    expected = [f"{value:.4f}" for value in sorted((curve[0] for curve in curves), reverse=True)]
    assert lines.locator(".readout b").all_inner_texts() == expected
    opened.page.mouse.move(5, 5)
    assert lines.locator(".readout").is_hidden()


def test_every_control_is_reached_by_the_keyboard(visit: Visit, report: Path) -> None:
    opened = visit(report)
    wanted = opened.page.locator("button:visible, select:visible, .canvas, .scroll, nav a").count()
    seen = set()
    for _ in range(wanted + 3):
        opened.page.keyboard.press("Tab")
        seen.add(opened.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    assert len(seen) >= wanted


def test_dark_mode_is_followed(visit: Visit, report: Path) -> None:
    colours = {
        scheme: visit(report, color_scheme=scheme).evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        for scheme in ("light", "dark")
    }
    assert colours["light"] == ["rgb(255, 255, 255)", "rgb(28, 33, 38)"]
    assert colours["dark"] == ["rgb(20, 23, 26)", "rgb(232, 235, 238)"]


def lightness(colour: str) -> float:
    """Return how light a colour is, from 0 to 100, as CIELAB has it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    luminance = float(np.dot(linear, [0.2126, 0.7152, 0.0722]))
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_series_are_told_apart_in_grey(visit: Visit, report: Path, scheme: str) -> None:
    opened = visit(report, color_scheme=scheme)
    script = (
        "[0, 1, 2, 3].map(at => getComputedStyle(document.documentElement).getPropertyValue(`--series-${at}`).trim())"
    )
    grey = sorted(lightness(colour) for colour in opened.evaluate(script))
    assert min(np.diff(grey)) > 8
    lines = section(opened, "Sampled candidates").locator("[data-part=line]")
    assert len(set(lines.evaluate_all("all => all.map(one => one.getAttribute('stroke-dasharray'))"))) == 3


@pytest.mark.parametrize("width", [320, 390, 768, 1600])
def test_nothing_is_wider_than_the_screen(visit: Visit, report: Path, width: int) -> None:
    opened = visit(report, viewport={"width": width, "height": 800})
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    charts = opened.page.locator("svg.chart").evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    assert max(charts) <= width


def test_paper_gets_no_buttons(visit: Visit, report: Path) -> None:
    opened = visit(report, color_scheme="dark")
    opened.page.emulate_media(media="print")
    controls = ".toolbar:visible, .tools:visible, nav:visible, .readout:visible, select:visible, input:visible"
    assert opened.page.locator(controls).count() == 0
    assert opened.page.locator("svg.chart:visible").count() == CHARTS
    together = "one => ['break-after', 'break-inside'].map(name => getComputedStyle(one).getPropertyValue(name))"
    assert opened.page.locator("h2").first.evaluate(together)[0] == "avoid"
    assert opened.page.locator(".how").first.evaluate(together) == ["avoid", "avoid"]
    assert opened.page.locator("figure").first.evaluate(together)[1] == "avoid"
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.page.pdf()[:4] == b"%PDF"


def test_results_alone_make_a_report_too(visit: Visit, ranks: dict[str, tr.Ranks], tmp_path: Path) -> None:
    results: list[Any] = [tr.evaluate(ranks, METRICS), tr.compare(ranks, "auc")]
    tr.write_report(results, tmp_path / "results.html")
    opened = visit(tmp_path / "results.html")
    assert opened.page.locator("h2").all_inner_texts() == ["Evaluation", "Comparison"]
    assert [len(cells(table)) for table in opened.page.locator("table").all()] == [3, 3]
    assert opened.messages == []


def test_the_reproduction_is_a_report_too(visit: Visit, tmp_path: Path) -> None:
    study = embedded()
    some = Study(tuple(one[:300] for one in study.x), study.y[:300], study.z[:300])
    tables = [
        PublishedTable("Table 1: exact metrics", toy.table_1()),
        PublishedTable("Table 2: sampled", toy.table_2()),
    ]
    opened = visit(write_paper_report(some, tables, tmp_path / "paper"))
    titles = opened.page.locator("h2").all_inner_texts()
    assert [title.split(":")[0] for title in titles] == [
        "MovieLens 1M", "MovieLens 1M", "Figure 5", "Figure 6", "Figure 6, right", "Ties", "Figure 2",
        "Figures 1, 3 and 4", "Table 1", "Table 2", "How it was computed",
    ]  # fmt: skip
    assert cells(section(opened, "Table 1").locator("table"))[0] == [
        "A",
        "published",
        "0.990",
        "0.010",
        "0.150",
        "0.000",
    ]
    differences = cells(section(opened, "Table 2").locator("table"))[2][2:]
    assert differences == ["+0.0001", "+0.0058", "+0.0044", "+0.0000"]
    numbers = section(opened, "Table 2").locator("tbody td:not(:nth-child(2))")
    assert set(numbers.evaluate_all("all => all.map(one => getComputedStyle(one).textAlign)")) == {"right"}
    assert opened.page.locator("svg.chart").count() == 7
    choose(opened, "ap")
    marks = section(opened, "Figure 2: expected metric against m").locator(".marks li").all_inner_texts()
    # section 4.2 of the paper, with replacement: B overtakes C at 73, C overtakes B at 281 and A at 438
    assert marks[:3] == [
        "from m = 73 on B is above C", "from m = 281 on C is above B", "from m = 438 on C is above A",
    ]  # fmt: skip
    assert opened.messages == []
    assert findings(opened) == []


def findings(opened: Opened, options: dict[str, Any] | None = None) -> list[str]:
    """Return what axe-core finds on a page, at any level."""
    if not AXE.exists():
        pytest.skip("no axe-core: make .venv/.axe")
    opened.evaluate(AXE.read_text())
    found = opened.evaluate("options => axe.run(options).then(result => result.violations)", options or {})
    return [f"{each['id']} ({each['impact']}): {each['nodes'][0]['html'][:200]}" for each in found]


CONTRAST = "color-contrast"


def test_the_scheme_changes_colours_alone_and_the_width_none() -> None:
    """So that it is enough to look for contrast in each scheme, and for all else at each width."""
    blocks = re.findall(r"^@media (.*?) \{\n(.*?)^\}", (FOLDER / "page/page.css").read_text(), re.DOTALL | re.MULTILINE)
    of_scheme, of_width = ([text for query, text in blocks if word in query] for word in ("scheme", "width"))
    assert [len(of_scheme), len(of_width)] == [1, 2]
    names = re.findall(r"^ +([\w-]+): ", of_scheme[0], re.MULTILINE)
    assert all(name.startswith("--") or "color" in name for name in names), names
    assert not re.search(
        r"^ +(--|.*(color|background|border|fill|stroke|opacity)).*: ", "".join(of_width), re.MULTILINE
    )


@pytest.mark.parametrize(
    ("scheme", "width", "options"),
    [
        ("light", 1100, {}),
        ("dark", 1100, {"runOnly": [CONTRAST]}),
        ("light", 390, {"rules": {CONTRAST: {"enabled": False}}}),
    ],
    ids=["all", "dark", "narrow"],
)
def test_everybody_can_read_it(
    visit: Visit, report: Path, tmp_path: Path, scheme: str, width: int, options: dict[str, Any]
) -> None:
    shown = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    opened = visit(report, **shown)
    for button in opened.page.get_by_role("button", name="Numbers").all():
        button.click()
    assert findings(opened, options) == []
    tr.write_explorer(None, tmp_path / "explore.html")
    assert findings(visit(tmp_path / "explore.html", **shown), options) == []


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of 12 recommenders with groups of users and of items."""
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(300, 6)) @ rng.normal(size=(6, 80))
    best = np.argsort(-(scores + rng.gumbel(size=scores.shape)), axis=1)
    lists = [own[: 3 + user % 9].tolist() for user, own in enumerate(best)]
    train = tr.Interactions.of([own[1:] for own in lists], "train", n_users=300, n_items=80)
    split = tr.Split(train, tr.Interactions.of([own[:1] for own in lists], "test", n_users=300, n_items=80))
    ranks = {f"noise {at}": tr.rank(scores + rng.normal(size=scores.shape) * at / 3, split) for at in range(12)}
    path = tmp_path_factory.mktemp("large") / "report.html"
    tr.write_report(ranks, path, split=split, design=20)
    return path


def test_twelve_recommenders_fit(visit: Visit, large: Path) -> None:
    opened = visit(large)
    assert opened.evaluate("document.documentElement.scrollHeight") < 6_000
    assert opened.page.locator(".toolbar").evaluate("bar => bar.getBoundingClientRect().height") < 60
    assert section(opened, "Comparison").locator("figure.matrix rect").count() == 132
    assert opened.messages == []
    link = opened.page.locator("nav a", has_text="Groups")
    link.click()
    bar, heading = (
        one.evaluate("one => one.getBoundingClientRect()")
        for one in (opened.page.locator(".toolbar"), section(opened, "Groups").locator("h2"))
    )
    assert heading["top"] >= bar["bottom"], "the toolbar covers no heading that a link leads to"


def test_thirty_series_all_look_different(visit: Visit, large: Path) -> None:
    opened = visit(large)
    made = opened.page.locator(".toolbar .chip .swatch").evaluate_all(
        "all => all.map(one => [...one.children].map(part => part.outerHTML).join(''))"
    )
    assert len(made) == len(set(made)) == 12
    source = (FOLDER / "page/looks.js").read_text().replace("export ", "")
    source = "\n".join(line for line in source.splitlines() if not line.startswith("import "))
    script = f"(() => {{ {source}; return d3.range(30).map(at => [look(at), symbolName(at)]) }})()"
    looks = opened.evaluate(script)
    for part in ("strokeDasharray", None):
        kinds = [(look["stroke"], symbol if part is None else look[part]) for look, symbol in looks]
        assert len(set(kinds)) == 30


def test_a_cell_of_the_matrix_is_read_by_the_keyboard(visit: Visit, large: Path) -> None:
    opened = visit(large)
    matrix = section(opened, "Comparison").locator("figure.matrix")
    matrix.locator(".canvas").focus()
    readout = matrix.locator(".readout")
    opened.page.keyboard.press("ArrowRight")
    first = readout.locator("strong").inner_text()
    opened.page.keyboard.press("ArrowDown")
    below = readout.locator("strong").inner_text()
    assert first.split(" − ")[0] != below.split(" − ")[0]
    matrix.get_by_role("button", name="Numbers").click()
    assert len(cells(matrix.locator("table"))) == 66


def test_the_view_is_in_the_address(visit: Visit, report: Path) -> None:
    opened = visit(report)
    choose(opened, "auc")
    opened.page.locator(".toolbar .chip", has_text="ties").press("Enter")
    section(opened, "Sampled candidates").get_by_role("button", name="x logarithmic").click()
    opened.page.locator("nav a", has_text="Groups").click()
    fragment = opened.evaluate("location.hash")
    again = visit(report)
    again.page.goto(f"{report.as_uri()}{fragment}")
    again.page.reload()
    again.settle()
    assert again.page.locator("#metric").input_value() == "auc"
    assert again.page.locator(".sentence").inner_text() == opened.page.locator(".sentence").inner_text()
    pressed = "all => all.map(one => one.getAttribute('aria-pressed'))"
    for place in (".toolbar .chip", "[data-scale]"):
        assert again.page.locator(place).evaluate_all(pressed) == opened.page.locator(place).evaluate_all(pressed)
    again.wait_until("scrollY > 500")
    assert again.messages == []


def test_sentences_on_top_follow_the_metric(visit: Visit, report: Path) -> None:
    opened = visit(report)
    told = {}
    for metric in METRICS:
        choose(opened, metric)
        told[metric] = opened.page.locator(".sentence").inner_text()
    assert all(name in told[metric] for metric, name in zip(METRICS, ("NDCG@10", "Recall@10", "AUC"), strict=True))


def test_figures_are_saved_as_files(visit: Visit, report: Path, ranks: dict[str, tr.Ranks]) -> None:
    opened = visit(report)
    figure = section(opened, "Metrics").locator("figure")
    saved = {}
    for name in ("SVG", "CSV", "LaTeX"):
        with opened.page.expect_download() as download:
            figure.get_by_role("button", name=name).click()
        saved[name] = Path(download.value.path()).read_text()
    picture = ElementTree.fromstring(saved["SVG"])
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in saved["SVG"]
    header, *rows = csv.reader(saved["CSV"].splitlines())
    assert header == ["row", "NDCG@10", "95 % interval low", "95 % interval high"]
    for name, *numbers in rows:
        found = tr.estimate(ranks[name], "ndcg@10")
        np.testing.assert_allclose([float(text) for text in numbers], [found.mean, *found.confidence_interval()])
    assert saved["LaTeX"].startswith("\\begin{tabular}{lrrr}\n\\toprule\nrow & NDCG@10 & 95 \\% interval low & ")
    assert "ties \\& co & " in saved["LaTeX"]
    assert opened.messages == []


def test_terms_are_explained_on_hover_and_focus(visit: Visit, report: Path) -> None:
    opened = visit(report)
    tip, term = opened.page.locator("#tip"), section(opened, "Metrics").locator(".how .term").first
    assert tip.is_hidden()
    term.hover()
    assert tip.inner_text().startswith("Lists to be ranked")
    opened.page.mouse.move(2, 2)
    assert tip.is_hidden()
    header = section(opened, "Metrics").locator("thead button", has_text="AUC")
    header.focus()
    assert tip.inner_text() == "Chance that a random relevant item stands above a random irrelevant one."
    assert header.get_attribute("aria-describedby") == "tip"
    opened.page.keyboard.press("Escape")
    assert tip.is_hidden()
