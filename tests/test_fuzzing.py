"""Inputs that a fuzzer has found worth keeping, replayed; see tests/fuzzing.py."""

import pytest

from tests.fuzz_targets import TARGETS
from tests.fuzzing import seeds


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.filterwarnings("ignore:Reading `.npy`")
def test_replay(target: str) -> None:
    outcomes = [TARGETS[target](content) for content in seeds(target)]
    assert sum(outcomes) >= len(outcomes) / 4 > 0  # most kept inputs reach beyond the first check
