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
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Error, Page, Request

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

    def listen(self, start: bool = True) -> None:
        """Note what happens from now on, or no more."""
        handlers = {
            "console": self.hear,
            "pageerror": self.fail,
            "dialog": self.dismiss,
            "requestfinished": self.request,
            "requestfailed": self.request,
        }
        for event, handler in handlers.items():
            (self.page.on if start else self.page.remove_listener)(event, handler)

    def hear(self, message: ConsoleMessage) -> None:
        self.messages.append(f"{message.type}: {message.text}")

    def fail(self, error: Error) -> None:
        self.messages.append(f"error: {error}")

    def dismiss(self, dialog: Dialog) -> None:
        """Note that the page has opened a dialog, and close it."""
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def request(self, request: Request) -> None:
        if request.failure != "csp":  # blocked by the policy of the page
            self.requests.append(request.url)

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """Return what a script finds in the page."""
        return self.page.evaluate(script, argument)

    def global_names(self) -> set[str]:
        """Return the names that scripts see everywhere: properties of the window, and what they declare beside it."""
        declared = self.page.context.new_cdp_session(self.page).send("Runtime.globalLexicalScopeNames")
        return {*self.evaluate("Object.getOwnPropertyNames(window)"), *declared["names"]}

    def settle(self) -> None:
        """Wait until all is drawn, also what is not on the screen."""
        self.wait_until("!document.querySelector('[data-stale]')")

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


@pytest.fixture(scope="session")
def free_windows() -> dict[str, list[Page]]:
    """Windows that no test uses, by their options: making one takes as long as showing a page."""
    return {}


@pytest.fixture
def visit(browser: Browser, free_windows: dict[str, list[Page]]) -> Iterator[Callable[..., Opened]]:
    """Return a function that opens a file in a window of its own; options are those of a browser context."""
    used: list[tuple[Opened, dict[str, Any]]] = []

    def visited(path: Path, **options: Any) -> Opened:
        options = {"viewport": {"width": 1100, "height": 900}} | options
        free = free_windows.setdefault(str(options), [])
        opened = Opened(free.pop() if free else new_window(browser, options))
        used.append((opened, options))
        opened.listen()
        opened.page.goto(path.as_uri())
        opened.settle()
        return opened

    yield visited
    for opened, options in used:
        opened.listen(start=False)
        clear(opened.page, options)
        free_windows[str(options)].append(opened.page)


def new_window(browser: Browser, options: dict[str, Any]) -> Page:
    page = browser.new_context(**options).new_page()
    # errors that the page does not throw, such as of a ResizeObserver, are told to the window alone
    page.add_init_script("addEventListener('error', event => console.error(event.message))")
    return page


def clear(page: Page, options: dict[str, Any]) -> None:
    """Leave a window as it was when it was new."""
    page.goto("about:blank")
    page.mouse.move(0, 0)
    page.emulate_media(media="null")
    page.set_viewport_size(options["viewport"])
