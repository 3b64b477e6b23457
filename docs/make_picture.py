"""Take the pictures of reports in the README and the tutorial: ``python docs/make_picture.py`` (needs chromium)."""

import doctest
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import truerank as tr
from truerank.papers.krichene_rendle_2020.movielens import embedded

DOCS = Path(__file__).resolve().parent
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=5000 --window-size=1000,760"
)


def main() -> None:
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        ranks = {name: embedded().ranks[name] for name in "XZ"}
        tr.write_report(ranks, "report.html", title="X and Z on MovieLens 1M")
        photograph("report")
        follow(DOCS / "tutorials" / "first-evaluation.md")
        photograph("tutorial")


def follow(page: Path) -> None:
    """Run the examples of a page until it writes a report."""
    names: dict[str, object] = {}
    for example in doctest.DocTestParser().get_examples(page.read_text(encoding="utf-8")):
        exec(compile(example.source, page.name, "exec"), names)
        if "write_report" in example.source:
            return


def photograph(name: str) -> None:
    """Take a picture of the top of report.html."""
    browser = shutil.which("chromium") or "google-chrome"
    here = Path.cwd()
    files = [
        f"--user-data-dir={here}/profile",
        f"--screenshot={DOCS}/images/{name}.png",
        (here / "report.html").as_uri(),
    ]
    subprocess.run([browser, *OPTIONS.split(), *files], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
