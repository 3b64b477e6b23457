"""How many files a reader passes through to follow a call, and that each room only asks rooms before it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import truerank as tr
from tests.test_imports import ROOMS, SOURCE

RNG = np.random.default_rng(0)
USERS, ITEMS = RNG.normal(size=(60, 4)), RNG.normal(size=(100, 4))
EVENTS = [RNG.permutation(100)[:20].tolist() for _ in range(60)]
LEVEL = {each: depth for depth, rooms in enumerate(ROOMS) for each in rooms}


class Walk:
    """The files that a call passes through, in the order of their first function, and who asks whom."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.asked: set[tuple[str, str]] = set()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        here = _file(frame)
        if event != "call" or here is None or frame.f_code.co_name == "<module>":
            return
        self.files[here] = None
        caller = frame.f_back and _file(frame.f_back)
        if caller and "<locals>" not in frame.f_code.co_qualname:  # a function that was handed over is no question
            self.asked.add((caller, here))

    @property
    def against(self) -> set[tuple[str, str]]:
        """Calls into a room that comes later, other than through `core`, which runs what it is given."""
        rooms = {pair: [file.split("/")[0] for file in pair] for pair in self.asked}
        return {pair for pair, (a, b) in rooms.items() if a != "core" and LEVEL.get(b, 0) > LEVEL.get(a, 0)}


def _file(frame: FrameType) -> str | None:
    return _within(frame.f_code.co_filename)


@cache
def _within(file: str) -> str | None:
    path = Path(file)
    return path.relative_to(SOURCE).as_posix() if path.is_relative_to(SOURCE) else None


@contextmanager
def walking() -> Iterator[Walk]:
    walk = Walk()
    before = sys.getprofile()
    sys.setprofile(walk.note)
    try:
        yield walk
    finally:
        sys.setprofile(before)


def walked(call: Callable[[], object]) -> Walk:
    """Return the walk of a call, made a second time so that imports are done."""
    call()
    with walking() as walk:
        call()
    return walk


@pytest.fixture(scope="module")
def split() -> tr.Split:
    return tr.leave_k_out(EVENTS, rng=1)


@pytest.fixture(scope="module")
def ranks(split: tr.Split) -> dict[str, tr.Ranks]:
    noise = np.random.default_rng(1).normal(size=USERS.shape)
    models = {"a": tr.Factors(USERS, ITEMS), "b": tr.Factors(USERS + noise, ITEMS)}
    return {name: tr.rank(model, split) for name, model in models.items()}


def score(users: np.ndarray, items: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", USERS[users], ITEMS[items])


def check(walk: Walk, most: int) -> None:
    assert len(walk.files) <= most, list(walk.files)
    assert not walk.against


def test_exact(split: tr.Split) -> None:
    model = tr.Factors(USERS, ITEMS)
    check(walked(lambda: tr.evaluate(tr.rank(model, split), "ndcg@10")), 19)


def test_inverse_sampling(split: tr.Split) -> None:
    design = tr.InverseSampling()
    check(walked(lambda: tr.evaluate(tr.rank_sampled(score, split, design=design, rng=0), "recall@10")), 29)


def test_compare(ranks: dict[str, tr.Ranks]) -> None:
    check(walked(lambda: tr.compare(ranks, "ndcg@10")), 14)


def test_report(ranks: dict[str, tr.Ranks], split: tr.Split, tmp_path: Path) -> None:
    check(walked(lambda: tr.write_report(ranks, tmp_path / "report.html", split=split)), 40)
