"""The forms of a table: escaped, with the best value bold, and complete."""

import csv
import dataclasses
import html.parser
import io
import pickle
import re

import pytest

import truerank as tr
from truerank.core.tables import Cell, Table, measured

NAMES = ("<b>A & 'B'</b>", "plain")


def two(**options: object) -> tr.Evaluation:
    ranks = {NAMES[0]: tr.Ranks.from_ranks([1, 2, 9] * 99, n=20), NAMES[1]: tr.Ranks.from_ranks([3, 3, 1] * 99, n=20)}
    return tr.evaluate(ranks, ["rr", "mean-rank"], **options)  # type: ignore[arg-type]


class Texts(html.parser.HTMLParser):
    """Collects the cells of a table, and which of them are bold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.bold: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        if "b" in self.open:
            self.bold.append(data)


def test_a_page_has_the_same_cells_as_the_text_and_no_markup_of_its_own() -> None:
    table = two().to_table()
    found = Texts(table.to_html())
    assert found.open == []
    assert found.rows == [list(table.header), *([cell.text for cell in row] for row in table.rows)]
    assert "<b>A" not in table.to_html()
    assert all(f"<p>note: {note}</p>" in table.to_html() for note in table.notes)


def test_a_value_is_bold_in_every_rich_form_if_it_is_found_to_be_the_best() -> None:
    table = two()
    # no difference is found in the reciprocal rank, 0.537 and 0.556; the smaller mean rank is better
    assert Texts(table.to_html()).bold == ["2.3333 ± 0.0548"]
    assert [line for line in table.to_markdown().splitlines() if "**" in line] == [
        "| plain | 0.5556 ± 0.0183 | **2.3333 ± 0.0548** | 297 | 0.0% |"
    ]
    assert table.to_latex().count(r"$\mathbf{") == 1
    assert r"$\mathbf{2.3333} \pm 0.0548$" in table.to_latex()
    assert "**" not in str(table)


def test_groups_have_their_own_best_values() -> None:
    table = two(by={user: "xyz"[user % 3] for user in range(297)})
    # (rr, mean-rank) of the first recommender: x 1, 1; y 0.5, 2; z 0.111, 9; of the second: 0.333, 3; 0.333, 3; 1, 1
    assert [cell.count("**") // 2 for cell in table.to_markdown().splitlines()[2:]] == [2, 2, 0, 0, 0, 2]


def test_what_takes_no_bold_type_takes_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> tr.Comparison:
        raise AssertionError

    table = dataclasses.replace(two(), contest=refuse)
    for form in (str, repr, tr.Evaluation.to_csv, tr.Evaluation.to_json, tr.Evaluation.to_frame, pickle.dumps):
        assert form(table) is not None
    with pytest.raises(AssertionError):
        table.to_html()


def test_a_pickle_carries_no_ranks() -> None:
    table = two()
    read = pickle.loads(pickle.dumps(table))
    assert (read, read.contest) == (table, None)
    assert "**" not in read.to_markdown()
    assert len(pickle.dumps(table)) < 3_000


HOSTILE = "50% of A_1 & B~c^2 {x} \\y <z> #|$5$\r\nnext"


def test_latex_prints_every_letter_as_it_is() -> None:
    ranks = {HOSTILE: tr.Ranks.from_ranks([1, 2], n=9), "[a]": tr.Ranks.from_ranks([1, 2], n=9)}
    _, _, header, _, first, second, *_ = tr.evaluate(ranks, "rr").to_latex().splitlines()
    assert first.split(" & $")[0] == (
        r"50\% of A\_1 \& B\textasciitilde{}c\textasciicircum{}2 \{x\} \textbackslash{}y \textless{}z\textgreater{} "
        r"\#\textbar{}\$5\$ next"
    )
    assert second.startswith("{}[a] & $")  # or it would be an argument of the line end before it
    assert header.startswith(" & rr & instances & tied")
    sampled = tr.evaluate(tr.Ranks.from_sampled([1, 2], m=5, n=9), "recall@2~bv(0.1)").to_latex()
    assert r"recall@2\textasciitilde{}bv(0.1)" in sampled
    assert Cell("$x^2$").latex == r"\$x\textasciicircum{}2\$"
    assert Cell("0.5 (0.1 to 0.9)", best=True).latex == r"\textbf{0.5 (0.1 to 0.9)}"


def test_markdown_shows_every_letter_as_it_is() -> None:
    table = tr.evaluate({HOSTILE: tr.Ranks.from_ranks([1, 2], n=9), "B": tr.Ranks.from_ranks([2, 2], n=9)}, "rr")
    assert len(table.to_markdown().splitlines()) == 4
    row = table.to_markdown().splitlines()[2]
    assert row.startswith(r"| 50% of A_1 &amp; B~c^2 {x} \\y &lt;z&gt; #\|$5$ next | ")
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert Cell("*a* _b_ `c` [d](e) f_g").markdown == r"\*a\* \_b\_ \`c\` [d]\(e) f_g"
    other = Table(("<i>", "a|b"), ((Cell("x"), Cell("y")),), ({"x": 1},))
    assert other.to_markdown().splitlines()[0] == r"| &lt;i&gt; | a\|b |"


@pytest.mark.parametrize("mark", "=+-@\t\r")
def test_no_text_is_a_formula_of_a_spreadsheet(mark: str) -> None:
    name = f'{mark}cmd|"/c calc"!A1'
    table = tr.evaluate({name: tr.Ranks.from_ranks([1, 2], n=9), "-0.5": tr.Ranks.from_ranks([2, 2], n=9)}, "rr")
    for text, delimiter in ((table.to_csv(), ","), (table.to_tsv(), "\t")):
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
        assert [row["recommender"] for row in rows] == [f"'{name}", "-0.5"]
    found = tr.compare({"A": tr.Ranks.from_ranks([1, 1] * 20, n=9), "B": tr.Ranks.from_ranks([2, 3] * 20, n=9)}, "rr")
    (row,) = csv.DictReader(io.StringIO(found.to_csv()))
    assert float(row["difference"]) == found["B", "A"].difference < 0  # numbers remain numbers


def test_csv_can_be_read_back() -> None:
    table = two()
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [row["recommender"] for row in rows] == [NAMES[0], NAMES[0], NAMES[1], NAMES[1]]
    assert [float(row["mean"]) for row in rows] == [cell.mean for cell in table.estimates]


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (["als"], ["ndcg_at_10", "ndcg_at_10/se"]),
        (["a b", "../c"], ["a_b/ndcg_at_10", "a_b/ndcg_at_10/se", ".._c/ndcg_at_10", ".._c/ndcg_at_10/se"]),
        (["..", "é@"], ["_/ndcg_at_10", "_/ndcg_at_10/se", "at/ndcg_at_10", "at/ndcg_at_10/se"]),
    ],
)
def test_names_for_trackers(names: list[str], keys: list[str]) -> None:
    table = tr.evaluate({name: tr.Ranks.from_ranks([1, 2], n=9) for name in names}, "ndcg@10")
    assert list(table.to_dict(safe=True)) == keys
    assert len(table.to_dict()) == len(keys)
    assert "ndcg@10/se" in list(table.to_dict())[-1]


def test_names_that_become_the_same_are_refused() -> None:
    table = tr.evaluate({name: tr.Ranks.from_ranks([1, 2], n=9) for name in ("a b", "a_b")}, "ndcg@10")
    assert len(table.to_dict()) == 4
    with pytest.raises(tr.InputError, match="two results would have the name 'a_b/ndcg_at_10'"):
        table.to_dict(safe=True)


def test_cells_of_other_tables() -> None:
    table = Table(("", "x"), ((Cell("A"), measured(1.0, 0.5, 2, best=True)),), ({"x": 1.0},), ("n",), ("A wins",))
    assert table.to_text().splitlines()[-2:] == ["A wins", "note: n"]
    assert table.to_html().splitlines()[-2:] == ["<p>A wins</p>", "<p>note: n</p>"]
