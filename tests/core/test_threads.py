"""Work shared among threads: order, errors, progress and interrupts."""

import sys
import threading
import time
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.patience import HANGS, no_new_threads
from truerank.core.threads import available_threads, check_threads, share


@pytest.mark.parametrize("threads", [1, 2, 5, 50])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 33])
def test_results_are_in_the_order_of_the_tasks(threads: int, n_tasks: int) -> None:
    def run(task: int, _: Event) -> int:
        time.sleep(0.001 * (task % 3))  # tasks end in another order than they begin
        return task**2

    assert share(run, range(n_tasks), threads) == [task**2 for task in range(n_tasks)]


def test_tasks_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=HANGS)  # passed only if three tasks wait at once
    assert sorted(share(lambda task, _: meeting.wait(), range(3), 3)) == [0, 1, 2]


@pytest.mark.parametrize("threads", [1, 4])
def test_each_result_is_reported_once_in_the_calling_thread(threads: int) -> None:
    seen: list[tuple[int, Any]] = []
    share(lambda task, _: task, range(20), threads, lambda result: seen.append((result, threading.get_ident())))
    assert sorted(result for result, _ in seen) == list(range(20))
    assert {caller for _, caller in seen} == {threading.get_ident()}


@pytest.mark.parametrize("threads", [1, 4])
def test_of_several_errors_the_first_in_order_is_raised(threads: int) -> None:
    def run(task: int, _: Event) -> int:
        if task in (2, 3):
            time.sleep(0.05 * (task == 2))  # the later task fails earlier
            raise ValueError(f"task {task}")
        return task

    with pytest.raises(ValueError, match="task 2"):
        share(run, range(4), threads)


def test_after_an_error_waiting_tasks_are_not_begun() -> None:
    begun: list[int] = []

    def run(task: int, _: Event) -> None:
        begun.append(task)
        raise ValueError("the task failed")

    with pytest.raises(ValueError, match="the task failed"):
        share(run, range(1000), 2)
    assert len(begun) < 10


def test_an_error_while_reporting_tells_running_tasks_to_stop() -> None:
    told: list[bool] = []

    def run(task: int, stopped: Event) -> int:
        if task:
            told.append(stopped.wait(timeout=HANGS))
        return task

    def report(result: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        share(run, range(2), 2, report)
    assert told == [True]


@pytest.mark.parametrize("threads", [1, 3])
def test_tasks_are_prepared_in_order_in_the_calling_thread(threads: int) -> None:
    prepared: list[tuple[int, int]] = []

    def prepare(task: int) -> str:
        prepared.append((task, threading.get_ident()))
        return str(task)

    def run(text: str, _: Event) -> str:
        return text * 2

    assert share(run, range(20), threads, prepare=prepare) == [f"{task}{task}" for task in range(20)]
    assert prepared == [(task, threading.get_ident()) for task in range(20)]


def test_few_tasks_are_prepared_ahead() -> None:
    n_done, ahead = 0, []

    def prepare(task: int) -> int:
        ahead.append(task - n_done)
        return task

    def report(_: int) -> None:
        nonlocal n_done
        n_done += 1

    share(lambda task, _: task, range(50), 3, report, prepare)
    assert max(ahead) <= 3  # three tasks run, and one more waits


def test_an_error_of_a_prepared_task_ends_the_preparation() -> None:
    prepared: list[int] = []

    def prepare(task: int) -> int:
        prepared.append(task)
        return task

    def run(task: int, _: Event) -> None:
        raise ValueError(f"task {task}")

    with pytest.raises(ValueError, match="task 0"):
        share(run, range(1000), 2, prepare=prepare)
    assert len(prepared) < 10


def test_an_error_while_preparing_tells_running_tasks_to_stop() -> None:
    told: list[bool] = []
    running = Event()

    def prepare(task: int) -> int:
        if task:
            assert running.wait(timeout=HANGS)
            raise ValueError("the preparation failed")
        return task

    def run(_: int, stopped: Event) -> None:
        running.set()
        told.append(stopped.wait(timeout=HANGS))

    with no_new_threads(), pytest.raises(ValueError, match="the preparation failed"):
        share(run, range(5), 2, prepare=prepare)
    assert told == [True]


@pytest.mark.parametrize("interrupted", [True, False])
def test_an_interrupt_while_threads_start_remains_one(interrupted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        try:
            if interrupted:
                raise KeyboardInterrupt
        finally:
            raise RuntimeError("release unlocked lock")  # as the lock does that Thread.start waits for

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt if interrupted else RuntimeError):
        share(lambda task, _: task, range(5), 2)


def test_the_number_of_threads_is_checked() -> None:
    assert check_threads(None) == available_threads() >= 1
    assert check_threads(np.int64(3)) == 3  # type: ignore[arg-type]
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(tr.InputError, match="`threads` must be"):
            check_threads(wrong)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is on the address space, which Linux counts")
@pytest.mark.parametrize(("megabytes", "threads"), [(100, 1), (500, 3), (10_000, 16)])
def test_few_addresses_are_for_few_threads(megabytes: int, threads: int) -> None:
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 10**6, most))
    try:
        found = check_threads(16)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, most))
    assert found == threads
