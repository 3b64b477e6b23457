"""Settings of hypothesis, and the option for more attacks by damaged files."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attacks", type=int, default=3_000, help="damaged files that the readers are tried with")


@pytest.fixture(scope="session")
def n_attacks(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--attacks"))
