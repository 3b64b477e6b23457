"""Measured numbers in the README and the documentation are those of the files of results."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "make_measured.py"))
RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))
SETTINGS = ["17", "2026", "6,040", "3,706", "30,000", "40,000", "2", "10", "3"]
"""Numbers in the README's section that say when, on what, and with which settings it was measured."""


@pytest.mark.parametrize("page", SCRIPT["PAGES"], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_up_to_date(page: Path) -> None:
    """Every sentence is in its page once, and has the numbers of the results."""
    assert SCRIPT["filled"](page) == page.read_text(encoding="utf-8"), "run docs/make_measured.py"


def test_every_page_with_sentences_exists() -> None:
    assert {ROOT / name for name in SCRIPT["SENTENCES"]} <= set(SCRIPT["PAGES"])


def test_every_measured_number_of_the_readme_has_a_source() -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Measured")[2].partition("\n## ")[0]
    sentences = " ".join(SCRIPT["SENTENCES"]["README.md"])
    slots = len(re.findall(r"\{[^}]+\}", sentences))
    numbers = re.findall(r"(?<![\w.,])\d[\d,.]*\d|\d", section)
    assert len(numbers) == slots + len(SETTINGS)
    assert set(SETTINGS) <= set(numbers)


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.name)
def test_every_table_of_results_is_written_from_a_file(page: Path) -> None:
    by_hand = re.sub(r"<!-- [\w ,]+ -->\n.*?<!-- end -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not [line for line in by_hand.splitlines() if re.match(r"\|.*\d.*\|", line)]


def test_what_was_edited_is_put_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of a sentence, whose line may be broken anywhere, and one of a table."""
    monkeypatch.setitem(SCRIPT["filled"].__globals__, "ROOT", tmp_path)
    for name, right, wrong in (
        ("README.md", "numbers of the", "numbers\nof the"),
        ("docs/results/spark.md", "14.7 s", "9 s"),
    ):
        page, text = tmp_path / name, (ROOT / name).read_text(encoding="utf-8")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(re.sub(r"Of the \d+ numbers", "Of the 7 numbers", text).replace(right, wrong), encoding="utf-8")
        assert page.read_text(encoding="utf-8") != text
        assert SCRIPT["filled"](page).replace("numbers\nof the", "numbers of the") == text


def test_a_sentence_that_is_not_in_its_page_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCRIPT["filled"].__globals__, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text("Nothing was measured.")
    with pytest.raises(ValueError, match=r"must have the sentence 'exact ranks of .* once, but has it 0 times"):
        SCRIPT["filled"](tmp_path / "README.md")
