"""``truerank reproduce``."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import truerank as tr
from tests.cli.running import refusal, run_here, truerank
from truerank.cli import paper_commands
from truerank.papers.krichene_rendle_2020 import reproduction
from truerank.papers.krichene_rendle_2020 import reproduction as paper_report
from truerank.report import plots as drawing

REPORT = "The report, to be opened in a browser, is 'report.html'."


def test_tables_cells_and_figures(tmp_path: Path) -> None:
    figures, cells = tmp_path / "figures", tmp_path / "cells.json"
    done = truerank("reproduce", "krichene-rendle", "--json", cells, "--figures", figures)
    assert done.returncode == 0, done.stderr
    assert "C > A = B" in done.stdout
    assert "Of 84 cells" in done.stdout
    report = figures / "report.html"
    assert done.stdout.splitlines()[-1] == f"The report, to be opened in a browser, is '{report}'."
    assert done.stdout.splitlines()[-2].startswith(f"The figures are in '{figures}'")
    drawn = [f"figure-{number}.svg" for number in range(1, 7)]
    assert sorted(path.name for path in figures.iterdir()) == [*drawn, "report.html"]
    assert report.stat().st_size < 1_500_000
    records = json.loads(cells.read_text())["cells"]
    counts = Counter(record["table"] for record in records)
    assert counts == {1: 12, 2: 12, 3: 96, 4: 84}
    assert {"table", "row", "column", "published", "ours", "standard_error", "verdict"} <= set(records[0])
    assert records[0]["printed"] == "0.990"


def test_paths_are_checked_before_the_work(tmp_path: Path) -> None:
    command = ["reproduce", "krichene-rendle"]
    assert "there is no directory" in refusal(*command, "--json", tmp_path / "nowhere" / "cells.json")
    (tmp_path / "file").write_text("")
    assert "not a directory" in refusal(*command, "--figures", tmp_path / "file")
    assert "not a directory" in refusal(*command, "--figures", tmp_path / "file" / "figures")
    assert str(tmp_path) in refusal(*command, "--data", tmp_path)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """Let the tables be two words and the report be empty, and return the command."""
    monkeypatch.setattr(reproduction, "tables", lambda _study: iter(["a table"]))
    monkeypatch.setattr(paper_report, "write_paper_report", lambda *_: Path("report.html"))
    monkeypatch.chdir(tmp_path)
    return ["reproduce", "krichene-rendle"]


@pytest.mark.parametrize("asked", [True, False])
def test_an_error_while_drawing_is_an_error(quick: list[object], monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    def draw(*_: object) -> Iterator[str]:
        yield "Figure 1: a figure."
        raise tr.InputError("this can't be drawn.")

    monkeypatch.setattr(reproduction, "draw", draw)
    done = run_here(*quick, *(["--figures", "figures"] if asked else []))
    assert done.exit_code == 2
    assert done.stdout == "a table\n\nFigure 1: a figure.\n"
    assert done.stderr == "truerank: this can't be drawn.\n"


def test_without_matplotlib_the_tables_are_shown_with_a_note(
    quick: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "find_spec", lambda _name: None)
    done = run_here(*quick)
    assert (done.exit_code, done.stdout) == (0, f"a table\n\n{REPORT}\n")
    assert done.stderr == "note: figures need matplotlib, which truerank's extra 'plots' installs.\n"
    assert "figures need matplotlib" in refusal(*quick, "--figures", "figures")


def test_figure_formats_are_those_of_the_plots() -> None:
    assert paper_commands.FIGURE_FORMATS == drawing.FORMATS
