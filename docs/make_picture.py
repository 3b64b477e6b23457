"""Take the picture of the report in the README: ``python docs/make_picture.py`` (needs chromium)."""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import truerank as tr
from truerank.papers.krichene_rendle_2020.movielens import embedded

TARGET = Path(__file__).with_name("images") / "report.png"
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=5000 --window-size=960,850"
)


def main() -> None:
    ranks = {name: embedded().ranks[name] for name in "XZ"}
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        tr.write_report(ranks, report, title="X and Z on MovieLens 1M")
        browser = shutil.which("chromium") or "google-chrome"
        files = [f"--user-data-dir={folder}/profile", f"--screenshot={TARGET}", report.as_uri()]
        subprocess.run([browser, *OPTIONS.split(), *files], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
