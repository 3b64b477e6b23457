"""The benchmark of the main paths through time fails where one has become slower, and only there."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import history


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "HISTORY", tmp_path / "history.csv")
    monkeypatch.setattr(history, "paths", lambda: {"one / product": (one, limit), "two / NumPy": (limit, limit)})


def one() -> None: ...


def limit() -> None: ...


def run(monkeypatch: pytest.MonkeyPatch, option: str, *ratios: float) -> None:
    """Run the benchmark as if measurements of one path gave these ratios, and all others 1."""
    measured: Iterator[float] = iter(ratios)

    def ratio(self: history.Timed, rounds: int) -> float:
        return next(measured) if self.calls[0] is one else 1.0

    monkeypatch.setattr(history.Timed, "ratio", ratio)
    monkeypatch.setattr(sys, "argv", ["history.py", option])
    history.main()
    assert next(measured, None) is None, "measured less often than expected"


def test_a_slowdown_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "--add", 1.0)
    with pytest.raises(SystemExit, match=r"slower by more than 10 %: one / product$"):
        run(monkeypatch, "--check", *[1.11] * 5)


@pytest.mark.parametrize("ratios", [(0.5,), (1.09,), (1.3, 1.2, 1.05)], ids=["faster", "within 10 %", "noise"])
def test_anything_else_passes_it(monkeypatch: pytest.MonkeyPatch, ratios: tuple[float, ...]) -> None:
    run(monkeypatch, "--check", 3.0)  # there is no history yet
    run(monkeypatch, "--add", 1.0)
    run(monkeypatch, "--check", *ratios)


def test_only_the_last_ratios_of_this_processor_count(monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "--add", 1.0)
    run(monkeypatch, "--add", *[2.0] * 5)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(history, "processor", lambda: "another processor, its loops")
        run(elsewhere, "--add", 0.1)
    run(monkeypatch, "--check", 2.0)
