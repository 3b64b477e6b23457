"""The built documentation: complete, independent of the network, and searchable from the file system (`make docs`)."""

import json
import re
import shutil
import subprocess
import zlib
from pathlib import Path
from types import ModuleType

import pytest

import truerank as tr

SITE = Path(__file__).parents[2] / "build" / "docs"
EXPLORER = SITE / "explore.html"
PAGES = sorted(set(SITE.rglob("*.html")) - {EXPLORER})
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="needs the site: make docs")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs chromium")
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --virtual-time-budget=10000 --enable-logging=stderr --dump-dom"
)


def documented() -> set[str]:
    """Return the names in the inventory of the site."""
    header, _, packed = (SITE / "objects.inv").read_bytes().partition(b"zlib.\n")
    assert header.startswith(b"# Sphinx inventory version 2")
    return {line.split()[0] for line in zlib.decompress(packed).decode().splitlines()}


def shown(page: str, profile: Path) -> tuple[str, list[str]]:
    """Return a page as a browser shows it from the file system, and what its console says besides the theme's log."""
    command = [str(BROWSER), *OPTIONS.split(), f"--user-data-dir={profile}", f"{SITE.as_uri()}/{page}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line and "[PST]" not in line]


def test_every_public_name_is_documented() -> None:
    names = {name for name in dir(tr) if not isinstance(getattr(tr, name), ModuleType)}
    names |= {f"metrics.{name}" for name in dir(tr.metrics)}
    assert {f"truerank.{name}" for name in names} - documented() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SITE)))
def test_a_page_loads_nothing_from_the_network(page: Path) -> None:
    text = page.read_text()
    loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*?\bsrc=\"([^\"]*)\"", text)
    loaded += re.findall(r"<link\b(?=[^>]*rel=\"(?:stylesheet|preload|icon)\")[^>]*?\bhref=\"([^\"]*)\"", text)
    assert loaded
    assert not [address for address in loaded if re.match(r"(?:https?:)?//", address)]


def test_no_metric_is_taken_for_an_address() -> None:
    assert [page.name for page in PAGES if "mailto:" in page.read_text()] == []


def test_style_sheets_load_nothing_from_the_network() -> None:
    sheets = sorted(SITE.rglob("*.css"))
    assert sheets
    assert not [sheet for sheet in sheets if re.search(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", sheet.read_text())]


def test_names_in_the_text_are_linked_with_the_reference() -> None:
    page = (SITE / "sampling.html").read_text()
    assert re.search(r'<a [^>]*href="api/ranking\.html#truerank\.rank_sampled"', page)


def test_figures_follow_the_dark_mode() -> None:
    texts = [page.read_text() for page in PAGES]
    drawn = [re.findall(r'class="only-light" src="([^"]*)\.svg"', text) for text in texts]
    dark = [re.findall(r'class="only-dark" src="([^"]*)\.dark\.svg"', text) for text in texts]
    assert drawn == dark
    assert sum(map(len, drawn)) == sum(len(re.findall(r"<img\b[^>]*\.svg", text)) for text in texts) // 2 > 5
    for path in (SITE / "_images").glob("*.dark.svg"):
        assert not re.search("#000000|#ffffff", path.read_text())


def test_the_explorer_is_linked() -> None:
    assert EXPLORER.is_file()
    assert 'href="../explore.html"' in (SITE / "explanations" / "why-sampled-metrics-mislead.html").read_text()


FIRST = {
    "compare two models": "how-to/compare-two-models",
    "NDCG": "definitions",
    "sampled HR@10": "how-to/trust-sampled-metric",
    "can I trust my sampled metric": "how-to/trust-sampled-metric",
    "PyTorch": "how-to/pytorch-model",
    "LLM": "how-to/slow-scorer",
    "p value": "comparing",
    "ties": "explanations/ties",
    "Spark": "spark",
    "release gate": "how-to/release-gate",
    "MRR": "definitions",
    "MAP": "definitions",
    "hit rate": "definitions",
    "recall": "definitions",
    "AUC": "definitions",
    "negative sampling": "how-to/trust-sampled-metric",
    "100 negatives": "how-to/trust-sampled-metric",
    "statistical significance": "how-to/compare-two-models",
    "t-test": "comparing",
    "confidence interval": "explanations/uncertainty",
    "error bars": "explanations/uncertainty",
    "cross-encoder": "how-to/slow-scorer",
    "embeddings": "how-to/embeddings",
    "trec_eval": "how-to/run-and-qrels",
    "qrels": "how-to/run-and-qrels",
    "GitHub Actions": "how-to/release-gate",
    "non-inferiority": "how-to/release-gate",
    "diversity": "recommending",
    "calibration": "recommending",
    "serendipity": "recommending",
    "train test split": "data",
    "MovieLens": "data",
    "knowledge graph": "how-to/triples",
    "RecBole": "models",
    "popularity baseline": "recommenders",
    "install": "how-to/troubleshooting",
    "getting started": "tutorials/first-evaluation",
    "leaderboard": "many",
    "HTML report": "report",
}
"""What people type, and the page that has to come first."""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_search_shows_the_answer_first() -> None:
    command = ["node", str(Path(__file__).with_name("search.js")), str(SITE), *FIRST]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert dict(zip(FIRST, json.loads(done.stdout), strict=True)) == FIRST


@needs_browser
def test_search_works_from_the_file_system(tmp_path: Path) -> None:
    page, console = shown("search.html?q=inverse+sampling", tmp_path)
    assert re.search(r'<a href="[^"]*how-to/slow-scorer\.html[^"]*"[^>]*>Evaluate a slow scorer', page)
    assert not console


@needs_browser
@pytest.mark.parametrize("page", ["index.html", "explanations/ties.html", "api/ranking.html"])
def test_a_browser_finds_nothing_wrong(page: str, tmp_path: Path) -> None:
    text, console = shown(page, tmp_path)
    assert "<h1" in text
    assert not console
