"""The forms of a table: escaped, with the best value bold, and complete."""

import csv
import html.parser
import io

import pytest

import truerank as tr
from truerank.display.tables import Cell, Table, measured

NAMES = ("<b>A & 'B'</b>", "plain")


def two(**options: object) -> tr.Evaluation:
    ranks = {NAMES[0]: tr.Ranks.from_ranks([1, 2, 9], n=20), NAMES[1]: tr.Ranks.from_ranks([3, 1, 20], n=20)}
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


def test_the_best_value_of_each_metric_is_bold_in_every_rich_form() -> None:
    table = two()
    best = ["0.5370 ± 0.2573", "4.0000 ± 2.5166"]  # the larger reciprocal rank, and the smaller rank
    assert Texts(table.to_html()).bold == best
    assert [cell for cell in best if f"**{cell}**" in table.to_markdown()] == best
    assert table.to_latex().count(r"$\mathbf{") == 2
    assert r"$\mathbf{0.5370} \pm 0.2573$" in table.to_latex()
    assert "**" not in str(table)


def test_groups_have_their_own_best_values() -> None:
    table = two(by={0: "x", 1: "y", 2: "y"})
    # (rr, mean-rank) of the first recommender: x 1, 1; y 0.306, 5.5; of the second: x 0.333, 3; y 0.525, 10.5
    assert [cell.best for row in table.to_table().rows for cell in row[2:4]] == [
        *(True, True),
        *(False, True),
        *(False, False),
        *(True, False),
    ]


def test_equal_values_are_all_bold_and_undefined_ones_never() -> None:
    ranks = tr.Ranks.from_ranks([1, 2], n=9)
    table = tr.evaluate({"A": ranks, "B": ranks, "C": tr.Ranks.from_ranks([[], []], n=9)}, "rr").to_table()
    assert [row[1].best for row in table.rows] == [True, True, False]
    assert not any(cell.best for row in tr.evaluate(ranks, "rr").to_table().rows for cell in row)


def test_csv_can_be_read_back() -> None:
    table = two()
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [row["recommender"] for row in rows] == [NAMES[0], NAMES[0], NAMES[1], NAMES[1]]
    assert [float(row["mean"]) for row in rows] == [cell.mean for cell in table.estimates]


def test_a_repr_is_the_table() -> None:
    assert repr(two()) == str(two())
    assert "Estimate(" not in repr(two())
    assert repr(tr.risk(tr.Ranks.from_ranks([3], n=9), "rr", m=2)).split()[:3] == ["metric", "design", "instances"]


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
