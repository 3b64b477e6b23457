"""Settings of hypothesis, which compiled library is tested, and how many attacks by damaged files are tried."""

import gc
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("default"), max_examples=20)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--library", type=Path, metavar="FOLDER", help="folder of another build of the compiled library")
    parser.addoption("--attacks", type=int, default=1_000, help="damaged files for readers and commands")


def pytest_configure(config: pytest.Config) -> None:
    if folder := config.getoption("--library"):
        from truerank.kernels import library

        library.FOLDER = folder


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Without the search for examples in the docstrings of tests, which have none."""
    return [found for found in (yield) if type(found) is pytest.Module]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: the garbage collector would look through all of it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def n_attacks(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--attacks"))
