"""The report as a file: what it says and embeds; the browser's part is in test_report_in_browser.py."""

import doctest
import hashlib
import json
import re
from graphlib import CycleError
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.cli.running import refusal, run_here
from tests.pages import DOCS
from truerank.evaluation.comparisons import conclusions
from truerank.report import pages
from truerank.report.figures import rank_counts
from truerank.report.headlines import headline
from truerank.report.report_data import ReportData

VENDOR = Path(pages.__file__).parent / "vendor"
TOY = {
    "A": tr.Ranks.from_ranks([100] * 5, n=10_000),
    "B": tr.Ranks.from_ranks([40, 40, 8437, 9266, 4482], n=10_000),
    "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
}


def report_data(ranks: Any, metrics: Any = None, **options: Any) -> ReportData:
    return ReportData.of(ranks, metrics, **({"m": 100} | options))


def data(path: Path) -> dict[str, Any]:
    """Return the data that is embedded in a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def test_the_sentence_in_the_documentation() -> None:
    page, names = (DOCS / "report.md").read_text(), dict[str, Any]()
    for example in doctest.DocTestParser().get_examples(page)[:6]:
        exec(example.source, names)
    (quoted,) = re.findall(r"^> (.*)$", page, flags=re.MULTILINE)
    told = data(names["folder"] / "report.html")["headlines"]["ndcg@10"]
    assert f"{told['claim']} {told['sampled']}" == quoted


def written(tmp_path: Path, *args: Any, **options: Any) -> dict[str, Any]:
    path = tmp_path / "report.html"
    tr.write_report(args[0], path, **options)
    return data(path)


def sections(page: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {section["title"]: section for section in page["sections"]}


@pytest.mark.parametrize("line", (VENDOR / "SHA256SUMS").read_text().splitlines())
def test_vendored_libraries_are_what_was_reviewed(line: str) -> None:
    digest, name = line.split()
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
    assert f"vendor/{name}" in pages.LIBRARIES
    licence = (VENDOR / f"{name.split('-')[0]}-LICENSE").read_text()
    assert "Permission to use, copy, modify, and/or distribute this software" in licence


def test_every_vendored_library_has_a_checksum() -> None:
    listed = [line.split()[1] for line in (VENDOR / "SHA256SUMS").read_text().splitlines()]
    assert sorted(listed) == sorted(path.name for path in VENDOR.glob("*.js"))


def test_a_page_is_small_refers_to_nothing_and_is_the_same_again(tmp_path: Path) -> None:
    many = {f"recommender {number}": TOY["ABC"[number % 3]] for number in range(30)}
    tr.write_report(many, tmp_path / "many.html")
    content = (tmp_path / "many.html").read_bytes()
    assert len(content) < 1_500_000
    markup = content.split(b"<script>")[0]
    assert not re.search(rb"<(link|img|iframe|base|object|embed)\b|<script src|@import|url\(", markup)
    for name in ("one", "two"):
        tr.write_report(TOY, tmp_path / f"{name}.html", metrics="ap")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def bundle(folder: Path, **modules: str) -> str:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)
    return pages.bundled("main.js", folder)


def test_modules_become_one_in_the_order_of_their_imports(tmp_path: Path) -> None:
    text = bundle(
        tmp_path,
        main='import {\n  b,\n  c,\n} from "./b.js";\nimport { a } from "./a.js";\n\nlet kept = a + b;\n',
        a="const kept = 1;\nexport const a = kept;\n",
        b='import { a } from "./a.js";\nexport async function b() {}\nexport const c = a;\n',
    )
    assert text == dedent("""\
        const modules = {};
        modules["a.js"] = (() => {
        const kept = 1;
        const a = kept;
        return {a};
        })();
        modules["b.js"] = (() => {
        const { a } = modules["a.js"];
        async function b() {}
        const c = a;
        return {b, c};
        })();
        modules["main.js"] = (() => {
        const {
          b,
          c,
        } = modules["b.js"];
        const { a } = modules["a.js"];

        let kept = a + b;
        return {};
        })();""")


@pytest.mark.parametrize(
    "line",
    [
        'import a from "./a.js";',
        'import * as a from "./a.js";',
        'import { a as b } from "./a.js";',
        'import "./a.js";',
        'import { a } from "elsewhere";',
        'const a = await import("./a.js");',
        "const here = import.meta.url;",
        "export default 1;",
        "export let a = 1;",
        "export class A {}",
        "export { a };",
        'export * from "./a.js";',
    ],
)
def test_other_imports_and_exports_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match=r"^main.js has an import or export of a form that pages do not bundle"):
        bundle(tmp_path, main=f"const b = 1;\n{line}\n", a="export const a = 1;\n")


def test_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CycleError):
        bundle(tmp_path, main='import { a } from "./a.js";\n', a='import { b } from "./main.js";\n')


def test_no_name_leaves_the_data(tmp_path: Path) -> None:
    names = ["</script><script>alert(1)</script>", "<!-- <script>", "\u2028&amp;", "]]>"]
    page = written(tmp_path, {name: TOY["ABC"[at % 3]] for at, name in enumerate(names)}, metrics="ap")
    assert sorted(page["recommenders"]) == sorted(names)
    text = (tmp_path / "report.html").read_text()
    block = text.partition('id="data">')[2].partition("</script>")[0]
    assert not set("<>&\u2028") & set(block)


def test_the_sentence_about_two() -> None:
    """The paper's example: C has the best AP, and looks worst among 99 sampled candidates (Tables 1 and 2)."""
    many = {name: tr.Ranks.concatenate([TOY[name]] * 40) for name in "AC"}
    told = headline(report_data(many, "ap", m=99))
    difference = tr.compare(many, "ap")["C", "A", "ap"]
    low, high = difference.confidence_interval()
    assert told.claim == (
        f"C is better than A on AP by {difference.difference:.3f}, 95 % interval {low:.3f} to {high:.3f}."
    )
    assert told.sampled == "With 99 sampled candidates A would have won."
    shown = {name: tr.estimate(tr.UniformSampling(99).draw(one, rng=1), "ap").mean for name, one in many.items()}
    assert shown["A"] > shown["C"]


def test_the_sentence_about_several_and_about_one() -> None:
    told = headline(report_data(TOY, "ap", m=99))
    assert told.claim.startswith("It is open whether C, B or A is best on AP: no difference was found (C − B: ")
    assert told.sampled == ""
    low, high = tr.estimate(TOY["A"], "ap").confidence_interval()
    told = headline(report_data(TOY["A"], "ap", m=99))
    assert told.claim == f"recommender has AP 0.010 (95 % interval {low:.3f} to {high:.3f})."
    assert told.sampled == "With 99 sampled candidates it would have shown 0.636."


def test_the_sentences_follow_the_metric(tmp_path: Path) -> None:
    many = {name: tr.Ranks.concatenate([one] * 40) for name, one in TOY.items()}
    told = written(tmp_path, many, metrics=["ap", "auc"])["headlines"]
    result = tr.compare(many, ["ap", "auc"])
    gap = result["C", "B", "ap"]
    assert told["ap"]["claim"].startswith(f"C is best of 3 on AP, ahead of B by {gap.difference:.3f}, 95 % interval ")
    assert told["ap"]["sampled"] == "With 100 sampled candidates A would have won."
    assert told["auc"]["claim"].startswith("A is best of 3 on AUC, ahead of C by ")
    assert told["auc"]["sampled"] == "", "samples leave AUC as it is"


@pytest.mark.parametrize("m", [20, 100])
def test_how_large_a_gap_would_look(m: int) -> None:
    ranks = {"far": tr.Ranks.from_ranks([300, 200] * 60, n=1_000), "near": tr.Ranks.from_ranks([12, 30] * 60, n=1_000)}
    told = headline(report_data(ranks, "ap", m=m))
    exact = tr.estimate(ranks["near"], "ap").mean - tr.estimate(ranks["far"], "ap").mean
    shown = [tr.risk(ranks[name], "ap", tr.UniformSampling(m)).mean for name in ("near", "far")]
    times = (shown[0] - shown[1]) / exact
    assert times > 5
    number = f"{times:.1f}" if times < 10 else f"{times:.0f}"
    assert told.sampled == f"With {m} sampled candidates the gap would look {number} times as large."


def test_a_gap_that_would_look_half_as_large() -> None:
    ranks = {"near": tr.Ranks.from_ranks([1] * 90, n=1_000), "far": tr.Ranks.from_ranks([11] * 90, n=1_000)}
    shown = [tr.risk(ranks[name], "rr", tr.UniformSampling(100)).mean for name in ranks]
    assert (shown[0] - shown[1]) / (1 - 1 / 11) == pytest.approx(0.4, abs=0.05)
    assert headline(report_data(ranks, "rr", m=100)).sampled.endswith("the gap would look 0.4 times as large.")
    shown = [tr.risk(ranks[name], "rr", tr.UniformSampling(150)).mean for name in ranks]
    assert 0.45 < (shown[0] - shown[1]) / (1 - 1 / 11) < 0.55
    assert headline(report_data(ranks, "rr", m=150)).sampled.endswith("the gap would look half as large.")


def test_many_that_may_be_best_are_counted() -> None:
    rng = np.random.default_rng(4)
    alike = {f"a{at}": tr.Ranks.from_ranks(rng.integers(1, 60, 200), n=100) for at in range(6)}
    ranks = {**alike, "worse": tr.Ranks.from_ranks([95] * 200, n=100)}
    claim = headline(report_data(ranks, "auc")).claim
    assert claim.startswith("It is open which of 6 of 7 recommenders is best on AUC: no difference was found (")


def test_the_sentence_says_not_determined_where_the_table_does() -> None:
    exact = tr.Ranks.from_ranks(np.random.default_rng(0).integers(1, 500, 300), n=500)
    sampled = {name: tr.UniformSampling(20).draw(exact, rng=seed) for seed, name in enumerate("AB")}
    (found,) = tr.compare(sampled, "ndcg@10").differences
    assert found.verdict == "not determined by this sample"
    told = headline(report_data(sampled, "ndcg@10"))
    assert re.fullmatch(
        r"It is open whether (A or B|B or A) is better on NDCG@10: the sample does not determine it \(.*\)\.",
        told.claim,
    )
    assert told.sampled == ""


def test_the_comparison_follows_the_chosen_metric_and_counts_its_tests(tmp_path: Path) -> None:
    many = {name: tr.Ranks.concatenate([one] * 40) for name, one in TOY.items()}
    told = sections(written(tmp_path, many, metrics=["auc", "ap"]))["Comparison"]
    sentences, charts, tables = told["blocks"]
    result = tr.compare(many, ["auc", "ap"])
    assert {metric: block["text"].partition(": ")[2] for metric, block in sentences["blocks"].items()} == {
        sentence.partition(": ")[0]: sentence.partition(": ")[2] for sentence in conclusions(result)
    }
    assert "A is best" in sentences["blocks"]["auc"]["text"]
    assert "A is best" not in sentences["blocks"]["ap"]["text"]
    assert "adjusted for 6 tests (3 pairs, 2 metrics)" in told["text"]
    for each, row in zip(result.of("ap"), tables["blocks"]["ap"]["rows"], strict=True):
        low, high = each.confidence_interval()
        assert (row[2], row[-1]) == ([low, high], each.verdict)
        assert (low <= 0 <= high) == (each.verdict == "no difference found")
    against = charts["blocks"]["ap"]
    assert against["x"]["name"] == "difference from C in AP"
    for dot in against["dots"]:
        each = result[dot["row"], "C", "ap"]
        assert (dot["mean"], dot["low"], dot["high"]) == (each.difference, *each.confidence_interval())


def test_many_pairs_are_a_matrix(tmp_path: Path) -> None:
    many = {f"{name}{at}": tr.Ranks.concatenate([one] * 30) for name, one in TOY.items() for at in range(2)}
    told = sections(written(tmp_path, many, metrics="ap"))
    matrix = told["Comparison"]["blocks"][2]["blocks"]["ap"]
    result = tr.compare(many, "ap")
    assert matrix["names"] == [each.recommender for each in result.order().places]
    assert len(matrix["pairs"]) == 15
    for pair in matrix["pairs"]:
        each = result[pair["recommender"], pair["baseline"], "ap"]
        assert (pair["kind"], pair["winner"]) == (each.finding.kind, each.finding.winner)
        assert pair["p_value"] == each.adjusted_p_value
    chart, table = told["Metrics"]["blocks"]
    assert [row[0] for row in table["blocks"]["ap"]["rows"]] == matrix["names"]
    assert [set(own) for own in chart["blocks"]["ap"]["together"]] == [set(own) for own in result.order().groups]


def test_who_is_better_off_and_who_differs_most(tmp_path: Path) -> None:
    a = tr.Ranks.from_ranks([1, 2, 5, 5, 9, 9, 9], n=20, ids=list("abcdefg"))
    b = tr.Ranks.from_ranks([9, 2, 1, 6, 9, 1, 9], n=20, ids=list("abcdefg"))
    told = sections(written(tmp_path, {"A": a, "B": b}, metrics="rr"))["Where users differ"]["blocks"]
    (share,) = told[1]["blocks"]["rr"]["shares"]
    assert (share["row"], share["better"], share["worse"]) == ("A", pytest.approx(2 / 7), pytest.approx(2 / 7))
    rows = told[2]["blocks"]["rr"]["rows"]
    assert [(row[0], row[3]) for row in rows] == [
        (user, pytest.approx(difference))
        for user, difference in [("f", 1 - 1 / 9), ("c", 1 - 1 / 5), ("d", 1 / 6 - 1 / 5), ("a", 1 / 9 - 1)]
    ]
    assert rows[0][4:] == ["1", "9"]


def test_differences_by_group(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    ids = [f"u{at}" for at in range(90)]
    ranks = {
        name: tr.Ranks.from_ranks(rng.integers(1, most, 90), n=50, ids=ids) for name, most in (("A", 40), ("B", 20))
    }
    groups = {name: "new" if at < 30 else "old" for at, name in enumerate(ids)}
    told = sections(written(tmp_path, ranks, metrics="rr", by=groups))
    dots = told["Where users differ"]["blocks"][2]["blocks"][0]["blocks"]["rr"]["dots"]
    found = tr.compare(ranks, "rr", by=groups, baseline="A")
    for dot, each in zip(dots, found.differences, strict=True):
        assert dot["row"] == f"{each.group}, n = {each.n}"
        assert (dot["mean"], dot["low"], dot["high"]) == (each.difference, *each.confidence_interval())
    panels = told["Groups"]["blocks"][0]["blocks"]["rr"]["panels"]
    assert [(panel["title"], panel["size"]) for panel in panels] == [("new", "n = 30"), ("old", "n = 60")]
    assert [[dot["row"] for dot in panel["dots"]] for panel in panels] == [["B", "A"]] * 2


def test_exact_and_sampled_ranks_side_by_side(tmp_path: Path) -> None:
    places = np.minimum(np.random.default_rng(0).geometric(0.02, 400), 300)
    ranks = {name: tr.Ranks.from_ranks(own, n=300) for name, own in (("A", places), ("B", places[::-1]))}
    sampled = {"B": tr.UniformSampling(150).draw(ranks["B"], rng=1)}
    chart, table = sections(written(tmp_path, ranks, metrics=["ndcg@10", "auc"], sampled=sampled))["Exact and sampled"][
        "blocks"
    ]
    for metric, estimated in (("ndcg@10", "ndcg@10~bv(0.1)"), ("auc", "auc")):
        found, exact = tr.estimate(sampled["B"], estimated), tr.estimate(ranks["B"], metric).mean
        low, high = found.confidence_interval()
        (dot,) = chart["blocks"][metric]["dots"]
        assert (dot["mean"], dot["low"], dot["high"], dot["truth"]) == (found.mean, low, high, exact)
        (row,) = table["blocks"][metric]["rows"]
        assert row == ["B", estimated, [found.mean, low, high], exact, "in the interval"]


def test_recommended_lists(tmp_path: Path) -> None:
    data = tr.read_interactions(
        {user: [f"i{(user * 7 + at) % 23}" for at in range(2 + user % 5)] for user in range(60)}
    )
    split = tr.leave_k_out(data, rng=0)
    model = tr.Popularity().fit(split.train)
    lists = {"Popularity": tr.recommend(model, split, k=5)}
    told = sections(written(tmp_path, {"Popularity": tr.rank(model, split)}, split=split, metrics="rr", lists=lists))
    numbers, by_activity, items = told["Recommended lists"]["blocks"]
    metrics = ["coverage@5", "gini@5", "novelty@5", "tail-share@5"]
    found = tr.evaluate(lists, metrics, train=split.train)
    assert [cell[0] for cell in numbers["rows"][0][1:]] == [found["Popularity", metric].mean for metric in metrics]
    assert [panel["title"] for panel in by_activity["panels"]] == list(tr.by_activity(split).names)[1:]
    users = lists["Popularity"].to_frame("pandas").groupby("item").size().sort_values(ascending=False)
    first, share = re.match(r"(\w+) \(([\d.]+) %\)", items["rows"][0][2]).groups()  # type: ignore[union-attr]
    assert users[first] == users.max()
    assert float(share) == pytest.approx(100 * users.max() / len(lists["Popularity"]), abs=0.05)


def test_a_difference_outside_its_interval_is_told(tmp_path: Path) -> None:
    ranks = {"A": np.full(2_000, 15), "B": np.where(np.arange(2_000) < 600, 1, 1_000)}
    sampled = {
        name: tr.UniformSampling(100).draw(tr.Ranks.from_ranks(own, n=1_001), rng=1) for name, own in ranks.items()
    }
    told = sections(written(tmp_path, sampled, metrics=["ndcg@10", "ap"]))["Comparison"]
    for metric in ("ndcg@10", "ap"):
        (row,) = told["blocks"][2]["blocks"][metric]["rows"]
        assert row[1] < row[2][0]
        assert re.match(
            r"(B is better; the difference shown .* points the other way|.*; .* outside its interval)", row[-1]
        )


def test_lower_may_be_better() -> None:
    few, many = tr.Ranks.from_ranks([1, 2] * 30, n=50), tr.Ranks.from_ranks([30, 40] * 30, n=50)
    told = headline(report_data({"few": few, "many": many}, "mean-rank", m=20))
    assert told.claim.startswith("few is better than many on Mean-rank by 33.5, 95 % interval ")


def test_ranks_are_counted_as_by_hand() -> None:
    ranks = tr.Ranks(above=[0, 1, 8, 40], tied=[0, 3, 0, 0], n_candidates=50)
    # the second one is at ranks 2, 3, 4 or 5 with equal chances
    np.testing.assert_allclose(rank_counts(ranks, [1, 3, 10, 50]), [1, 0.5, 1.5, 1, 0], atol=1e-12)


def test_several_relevant_items_are_counted_one_by_one() -> None:
    ranks = tr.Ranks.from_ranks([[1, 2, 30], [4]], n=50)
    np.testing.assert_allclose(rank_counts(ranks, [1, 3, 10, 50]), [1, 1, 1, 1, 0], atol=1e-12)


def test_only_lines_that_are_drawn_are_explained(tmp_path: Path) -> None:
    better, worse = (tr.Ranks.from_ranks([rank] * 5, n=50) for rank in (2, 30))
    for ranks, explained in [({"better": better, "worse": worse}, False), (TOY, True)]:
        told = sections(written(tmp_path, ranks, metrics=["ap"]))["Sampled candidates"]
        assert ("dotted line" in told["text"]) is explained
        assert ("change places." in told["text"]) is not explained


def test_sampled_ranks_are_corrected_and_not_sampled_again(tmp_path: Path) -> None:
    exact = tr.Ranks.from_ranks(np.random.default_rng(0).integers(1, 500, 300), n=500)
    sampled = {name: tr.UniformSampling(100).draw(exact, rng=seed) for seed, name in enumerate("AB")}
    page = written(tmp_path, sampled)
    assert list(page["metrics"]) == ["ndcg@10~bv(0.1)", "recall@10~bv(0.1)", "ap~bv(0.1)", "auc"]
    assert "Sampled candidates" not in sections(page)
    assert {told["sampled"] for told in page["headlines"].values()} == {""}
    assert sections(page)["Rank distribution"]["blocks"][0]["x"]["name"] == "rank among the sampled candidates"


def test_cut_lists_have_a_bar_for_what_is_below(tmp_path: Path) -> None:
    lists = {"ann": ["a", "b", "c"], "bob": ["b", "a", "c"]}
    ranks = tr.read_lists(lists, {"ann": ["b"], "bob": ["z"]})
    page = written(tmp_path, ranks)
    assert list(page["metrics"]) == ["ndcg@3", "recall@3", "ap@3"]
    assert "Weight of each rank" not in sections(page)
    bars = sections(page)["Rank distribution"]["blocks"][0]
    assert bars["groups"] == ["1", "2–3", "below 3"]
    np.testing.assert_allclose(bars["bars"][0]["y"], [0, 1, 1])


def test_groups_of_users_and_items(tmp_path: Path) -> None:
    data = tr.read_interactions(
        {user: [f"i{(user * 7 + at) % 23}" for at in range(2 + user % 5)] for user in range(60)}
    )
    split = tr.leave_k_out(data, rng=0)
    page = written(tmp_path, tr.rank(tr.Popularity().fit(split.train), split), split=split, metrics="recall@5")
    users, items = sections(page)["Groups"]["blocks"]
    assert users["blocks"]["recall@5"]["x"]["name"] == "Recall@5, users by activity"
    found = tr.evaluate(tr.rank(tr.Popularity().fit(split.train), split), "recall@5", by=tr.by_popularity(split))
    panels = items["blocks"]["recall@5"]["panels"]
    expected = [cell.mean for cell in found.estimates if cell.n]
    np.testing.assert_allclose([dot["mean"] for panel in panels for dot in panel["dots"]], expected)


def test_metrics_that_are_functions(tmp_path: Path) -> None:
    def closeness(rank: Any, i: Any, n_relevant: Any, n: Any) -> Any:
        return 1 / (1 + rank) / n_relevant

    page = written(tmp_path, TOY, metrics=[closeness, "auc"])
    assert list(page["metrics"]) == ["closeness", "auc"]
    rows = sections(page)["Metrics"]["blocks"][1]["blocks"]["closeness"]["rows"]
    (cell,) = [row[1] for row in rows if row[0] == "A"]
    assert cell[0] == pytest.approx(1 / 101)
    assert set(sections(page)["Weight of each rank"]["blocks"][0]["blocks"]) == {"closeness", "auc"}


def test_what_cannot_be_told_of_a_metric_is_left_out_and_said() -> None:
    def made(metric: tr.Metric) -> str:
        if str(metric) == "ap":
            raise tr.InputError("it has no curve.")
        return "a curve"

    found = report_data(TOY, ["auc", "ap"]).per_metric(made)
    assert found == (
        {"auc": "a curve"},
        ("ap is left out: it has no curve.",),
    )


def test_tied_items_of_different_grades_have_an_expectation() -> None:
    """All 48 irrelevant candidates are sampled, so that it is the exact value, and the sentence need not say it."""
    starts, grades = range(0, 81, 2), [3, 1] * 40
    tied = tr.Ranks(above=[2, 2] * 40, tied=[3, 3] * 40, n_candidates=[50] * 40, indptr=starts, grades=grades)
    ranks = {"A": tied, "B": tr.Ranks.from_ranks([[1, 9]] * 40, n=50, grades=[[3.0, 1.0]] * 40)}
    data = report_data(ranks, "gndcg@10")
    expected = data.expected(data.metrics[0])
    assert expected == pytest.approx({name: tr.estimate(one, "gndcg@10").mean for name, one in ranks.items()})
    told = headline(data)
    assert re.fullmatch(r"B is better than A on GNDCG@10 by [\d.]+, 95 % interval [\d.]+ to [\d.]+\.", str(told))


def test_different_instances_are_matched_and_counted(tmp_path: Path) -> None:
    a = tr.Ranks.from_ranks([1, 2, 3], n=9, ids=["ann", "bob", "cyd"])
    b = tr.Ranks.from_ranks([4, 5], n=9, ids=["cyd", "ann"])
    page = written(tmp_path, {"A": a, "B": b}, metrics="rr")
    assert "A: 1 instance that not all recommenders have is left out" in sections(page)["How it was computed"]["notes"]
    assert [row[-1] for row in sections(page)["Metrics"]["blocks"][1]["blocks"]["rr"]["rows"]] == [2, 2]


def test_many_instances_are_represented_by_some_and_that_is_said(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    many = {name: tr.Ranks.from_ranks(rng.integers(1, 40, 12_000), n=40) for name in "AB"}
    page = written(tmp_path, many, metrics="auc", design=5)
    assert sections(page)["Sampled candidates"]["notes"] == [
        "computed on 10,000 of the 12,000 instances, chosen at random (seed 0)"
    ]


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ({}, {}, "a report is about 1 to 30 recommenders, got 0."),
        (7, {}, "a report is about ranks by name, or about results, got int."),
        (TOY, {"metrics": []}, "a report needs at least one metric, got none."),
        (TOY, {"metrics": "ndgc@10"}, "unknown metric 'ndgc@10'"),
        (TOY, {"design": 0}, "`m` must be a whole number from 1, got 0."),
        ({"A": tr.Ranks.from_ranks([[]], n=3)}, {}, "every recommender must have an instance with a relevant item."),
        ([tr.evaluate(TOY, "ap"), TOY["A"]], {}, "give ranks, or results, not both."),
        (TOY, {"sampled": {"D": TOY["A"]}}, "`sampled` names recommenders of the report, A, B, C, got 'D'."),
        (
            TOY,
            {"sampled": {"A": TOY["A"]}},
            "`sampled` is shown beside exact ranks, but those of 'A' are not one of each.",
        ),
        (TOY, {"lists": {"A": [1, 2]}}, "`lists` must be recommendations by name, as from `truerank.recommend`."),
    ],
)
def test_refusals(given: Any, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(tr.InputError, match=re.escape(message)):
        tr.write_report(given, tmp_path / "report.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_the_same_file(tmp_path: Path) -> None:
    for name, ranks in TOY.items():
        ranks.save(tmp_path / f"{name}.parquet")
    paths = [f"{name}={tmp_path / name}.parquet" for name in TOY]
    done = run_here("report", *paths, "-o", tmp_path / "command.html", "-m", "ap,auc", "--sampled", 50)
    assert (done.exit_code, done.output) == (0, f"written to '{tmp_path / 'command.html'}'\n")
    tr.write_report(TOY, tmp_path / "library.html", metrics=["ap", "auc"], design=50)
    assert (tmp_path / "command.html").read_bytes() == (tmp_path / "library.html").read_bytes()
    assert refusal("report", *paths, "-o", tmp_path / "x.pdf").startswith(
        "an output file must end in .html or .htm, got"
    )
