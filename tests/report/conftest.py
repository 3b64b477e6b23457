"""A real browser for the pages: the chromium, or Chrome, of this computer, driven by Playwright."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import HANGS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@dataclass
class Opened:
    """A page in the browser, what it has said since it was opened, and the requests that its policy let through."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def dismiss(self, dialog: Dialog) -> None:
        """Note that the page has opened a dialog, and close it."""
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """Return what a script finds in the page."""
        return self.page.evaluate(script, argument)

    def global_names(self) -> set[str]:
        """Return the names that scripts see everywhere: properties of the window, and what they declare beside it."""
        declared = self.page.context.new_cdp_session(self.page).send("Runtime.globalLexicalScopeNames")
        return {*self.evaluate("Object.getOwnPropertyNames(window)"), *declared["names"]}

    def wait_until(self, script: str) -> None:
        """Ask the page until a script finds true; Playwright's own waiting would need `eval` in the page."""
        end = time.monotonic() + HANGS
        while not self.evaluate(script):
            assert time.monotonic() < end, f"never true: {script}"
            self.page.wait_for_timeout(20)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start the browser once, or skip the tests with the reason."""
    api = pytest.importorskip("playwright.sync_api", reason="no Playwright: install truerank's extra 'browser'")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    with api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=OPTIONS)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Return a function that opens a file in a window of its own; options are those of a browser context."""
    contexts = []

    def visited(path: Path, **options: Any) -> Opened:
        context = browser.new_context(**({"viewport": {"width": 1100, "height": 900}} | options))
        contexts.append(context)
        opened = Opened(context.new_page())
        # errors that the page does not throw, such as of a ResizeObserver, are told to the window alone
        opened.page.add_init_script("addEventListener('error', event => console.error(event.message))")
        opened.page.on("console", lambda message: opened.messages.append(f"{message.type}: {message.text}"))
        opened.page.on("pageerror", lambda error: opened.messages.append(f"error: {error}"))
        opened.page.on("dialog", opened.dismiss)
        opened.page.on("requestfinished", lambda request: opened.requests.append(request.url))
        opened.page.on("requestfailed", lambda request: opened.requests.extend(_unless_blocked(request)))
        opened.page.goto(path.as_uri())
        return opened

    yield visited
    for context in contexts:
        context.close()


def _unless_blocked(request: Request) -> list[str]:
    return [] if request.failure == "csp" else [request.url]
