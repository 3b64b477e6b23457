"""How long a report of 12 recommenders takes to show another metric: ``python benchmarks/report_switching.py``.

Measures the median time until the screen has been painted, and the processor time of the page for each switch, which
includes the charts that are not on the screen and are drawn after that: results/report_switching.csv. Needs chromium
and Playwright.
"""

from __future__ import annotations

import os
import shutil
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

import truerank as tr
from real_ranks import save

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession

SWITCHES = 40
OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
SWITCH = """async (at) => {
  const select = document.getElementById("metric");
  const start = performance.now();
  select.selectedIndex = at % select.options.length;
  select.dispatchEvent(new Event("change"));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""


def write(path: Path, recommenders: int = 12, users: int = 1_000, items: int = 500) -> None:
    """Write a report on scores of users for items with more and more noise, with groups of users and of items."""
    rng = np.random.default_rng(0)
    popularity = rng.zipf(1.4, items).clip(1, 300)
    scores = rng.normal(size=(users, 8)) @ rng.normal(size=(8, items)) + np.log(popularity)
    best = np.argsort(-(scores + rng.gumbel(size=scores.shape)), axis=1)
    lists = [own[: 3 + user % 20].tolist() for user, own in enumerate(best)]
    train = tr.Interactions.of([own[1:] for own in lists], "train", n_users=users, n_items=items)
    split = tr.Split(train, tr.Interactions.of([own[:1] for own in lists], "test", n_users=users, n_items=items))
    noises = np.linspace(0.2, 4, recommenders)
    ranks = {f"noise {noise:.1f}": tr.rank(scores + rng.normal(size=scores.shape) * noise, split) for noise in noises}
    tr.write_report(ranks, path, split=split)


def page_seconds(session: CDPSession) -> float:
    """Return the processor time of the pages of a browser, whatever else the computer does."""
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    return float(sum(each["cpuTime"] for each in found if each["type"] == "renderer"))


def main() -> None:
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "report.html"
        write(path)
        program = shutil.which("chromium") or shutil.which("google-chrome")
        with driver.chromium.launch(executable_path=program, args=OPTIONS) as browser:
            page = browser.new_page(viewport={"width": 1100, "height": 900})
            page.goto(path.as_uri())
            page.wait_for_timeout(1_000)
            for at in range(8):  # until the scripts are compiled
                page.evaluate(SWITCH, at + 1)
            session = browser.new_browser_cdp_session()
            before, times = page_seconds(session), []
            for at in range(SWITCHES):
                times.append(page.evaluate(SWITCH, at + 1))
                page.wait_for_timeout(400)
            each = (page_seconds(session) - before) / SWITCHES
    found = [f"{statistics.median(times):.0f}", f"{1_000 * each:.0f}", SWITCHES, f"{os.getloadavg()[0]:.0f}"]
    save("report_switching.csv", ["ms", "CPU ms", "switches", "load"], [found])
    print("{} ms until another metric is shown, {} ms of processor time; median of {} switches, load {}".format(*found))


if __name__ == "__main__":
    main()
