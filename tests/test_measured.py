"""Measured numbers in the README and the documentation are those of the files of results."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "make_measured.py"))
RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))


@pytest.mark.parametrize("page", SCRIPT["PAGES"], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_up_to_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert SCRIPT["filled"](text) == text, "run docs/make_measured.py"


def test_every_measured_number_of_the_readme_has_a_source() -> None:
    """What is left without them says when, on what, and with which settings it was measured."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Measured")[2].partition("\n## ")[0]
    settings = ["16", "2026", "6,040", "3,706", "30,000", "40,000", "17", "2", "10", "3"]
    left = re.sub(r"<!--m .*?<!--/m-->", "", section)
    assert re.findall(r"(?<![\w.,])\d[\d,.]*\d|\d", left) == settings
    assert section.count("<!--m ") == 12


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.name)
def test_every_table_of_results_is_written_from_a_file(page: Path) -> None:
    by_hand = re.sub(r"<!-- [\w ,]+ -->\n.*?<!-- end -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not [line for line in by_hand.splitlines() if re.match(r"\|.*\d.*\|", line)]


def test_a_number_that_was_edited_is_put_right() -> None:
    text = (ROOT / "docs" / "results" / "spark.md").read_text(encoding="utf-8")
    assert SCRIPT["filled"](text.replace("14.7 s", "99.9 s")) == text
    assert "99.9" in text.replace("14.7 s", "99.9 s")
