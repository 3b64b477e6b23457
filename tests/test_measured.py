"""Measured numbers in the README and the documentation are those of the files of results, and there are no others."""

import re
import runpy
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "make_measured.py"))
RESULTS = [ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs" / "results").glob("*.md"))]
BY_HAND = [page for page in SCRIPT["PAGES"] if page.name != "commands.md"]
"""Pages that people write; docs/make_commands.py writes the other one from the commands."""
SETTINGS = ["6,040", "3,706", "30,000", "40,000", "10", "3"]
"""Numbers in the README's section that say with which settings it was measured."""


NUMBER = r"(?<![\w.,@/])\d+(?:[.,]\d+)*"
DECIMAL = r"(?<![\w.,@/])\d+\.\d+(?!\w|\.\d)"
UNIT = (
    r"(?:%|s|ms|µs|us|ns|seconds?|minutes?|hours?|core-hours?|[kKMG]i?B|times|px|pixels|percent|of the product)(?!\w)"
)
MEASURED = re.compile(rf"{NUMBER}(?: (?:to|and|or) {NUMBER})?[ -]?{UNIT}|± ?\d|{NUMBER} ±|{DECIMAL}")
"""What looks measured: a number with a unit or an error, and any number with decimals."""

BLOCKS = re.compile(r"^(`{3,}).*?^\1$", re.DOTALL | re.MULTILINE)
"""Examples, which are run as tests."""
CODE = re.compile(r"`[^`]+`|\]\([^)]*\)|\$\$.*?\$\$", re.DOTALL)
"""Names, addresses and formulas."""

DEFINED = {
    "levels, and goals that were set": (
        r"95 % intervals?", r"claim 95 %", r"is best \(95 %\)", r"probability of (?:at most )?\d+ %", r"p < 0\.05",
        r"error α of 5 %", r"values are 5 % and 95 %", r"tests reject at 5 %", r"power of 90 %",
        r"to cover in 92 to 98 %", r"correctly in 95 %", r"with a margin of 0\.02", r"95 % of everything",
    ),
    "versions, sections and publications": (
        r"(?:Python|NumPy|Apache-|Spark|implicit|Cornac|LensKit|RecTools|RecBole|LightFM|PyTorch from|loader) ?"
        rf"\d+\.\d+(?: and 3\.12)?(?![\d.,]*\d| ?{UNIT})",
        r"version 1\.0 a minor release \(0\.2, 0\.3\)", r"From 1\.0 on", r"needs 0\.6",
        r"arXiv[: ]\d+\.\d+", r"section 3\.1", r"\| (?:3\.1|5\.2) \|",
    ),
    "options, and constants of the code": (
        r"blocks of 64 MB", r"unpack to 1 GiB or to 50 times its size", r"at least 200 MB", r"is 1 % of the old mean",
        r"has 80 % of the training interactions", r"q mixed with 1 % of p", r"0\.01 by default",
        r"0\.3, 0\.1, \.\.\., 0\.0001", r"N up to 6 % smaller", r"by more than 0\.00003", r"\(g \+ 1\)\^-0\.6",
        r"bias \+ 0\.1 × variance", r"gamma, the 0\.1 above",
    ),
    "settings of simulations": (
        r"\(1 \+ number\)\^−0\.5", r"80 % of the popular fifth and 20 % of the others", r"true Recall@10 is 0\.32",
        r"If 2 % of the users lose", r"hits of 30 % on average", r"users 25 times",
    ),
    "arithmetic": (
        r"0\.5 / √100,000 = 0\.0016", r"take 2\.6 GB", r"standard error (?:of a share )?is \d\.\d %", r"a share of 5 %",
        r"Monte Carlo error at most 0\.7", r"change AUC by 0\.0166 at most", r"between equal recommenders it is 0\.75",
        r"is 0\.75 and its Hits@1 is 0\.5; at the mean rank 1\.5 they are 0\.67", r"then means anything up to 0\.31",
    ),
    "published": (r"published deviation of 0\.04", r"exact values are 0\.0760 for X and 0\.0884 for Y \(Krichene"),
}  # fmt: skip
"""What looks measured and is not, by reason."""


@cache
def by_hand(page: Path) -> str:
    """Return the words of a page: without what the script writes and without code, on one line."""
    return " ".join(CODE.sub(" ", BLOCKS.sub(" ", SCRIPT["filled"](page, lambda _: ""))).split())


def measured_by_hand(page: Path) -> list[str]:
    """Return what looks measured on a page, except for what is defined, and for decimals of its examples."""
    text = re.sub("|".join(pattern for patterns in DEFINED.values() for pattern in patterns), " ", by_hand(page))
    examples = "".join(found[0] for found in BLOCKS.finditer(page.read_text(encoding="utf-8")))
    found = [found[0] for found in MEASURED.finditer(text)]
    return [each for each in found if not re.search(rf"(?<![\d.]){re.escape(each)}", examples)]


@pytest.mark.parametrize("page", SCRIPT["PAGES"], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_up_to_date(page: Path) -> None:
    """Every sentence is in its page once, and has the numbers of the results."""
    assert SCRIPT["filled"](page) == page.read_text(encoding="utf-8"), "run docs/make_measured.py"


@pytest.mark.parametrize("page", BY_HAND, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_measured_number_that_the_script_does_not_write(page: Path) -> None:
    assert measured_by_hand(page) == [], "write it from a file of results, or list it as defined"


def test_every_defined_number_is_on_a_page() -> None:
    words = "\n".join(map(by_hand, BY_HAND))
    assert [pattern for own in DEFINED.values() for pattern in own if not re.search(pattern, words)] == []


def test_every_page_with_sentences_exists() -> None:
    assert {ROOT / name for name in SCRIPT["SENTENCES"]} <= set(SCRIPT["PAGES"])


def test_every_measured_number_of_the_readme_has_a_source() -> None:
    text = SCRIPT["filled"](ROOT / "README.md", lambda _: "")
    section = text.partition("## Measured")[2].partition("\n## ")[0]
    assert re.findall(r"(?<![\w.,])\d[\d,.]*\d|\d", section) == SETTINGS


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
    with pytest.raises(ValueError, match=r"must have the sentence 'On .* exact ranks of .* once, but has it 0 times"):
        SCRIPT["filled"](tmp_path / "README.md")
