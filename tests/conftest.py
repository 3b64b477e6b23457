"""Settings of hypothesis, and which compiled library is tested."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--library", type=Path, metavar="FOLDER", help="folder of another build of the compiled library")


def pytest_configure(config: pytest.Config) -> None:
    if folder := config.getoption("--library"):
        from truerank.compiled import library

        library.FOLDER = folder
