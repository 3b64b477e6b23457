"""Small changes to the code, one at a time: a test should notice each of them.

A change swaps an operator or a comparison, negates a condition, or adds one to a number, inside a function. All tests
are collected once. A first run maps each line to the tests that reach it, and to how long they take (build/reach.json);
then each change is made in a forked process, which runs the tests that reach it, the fastest first, until one fails.
benchmarks/results/mutations.csv keeps all changes that were tried, each with the seed that drew it, whether a test
noticed it at first, and the test that notices it now, or the reason why none can. Any place is as likely as any other;
those that were tried before are not tried again.

    python tests/mutations.py --changes 100 --seed 1
    python tests/mutations.py --changes 20 --module sampling/laws.py
    python tests/mutations.py --again            # those that survived, on all tests that reach them
"""

import argparse
import ast
import csv
import gc
import importlib
import itertools
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
CODE = ROOT / "src/truerank"
RESULTS = ROOT / "benchmarks/results/mutations.csv"
REACH = ROOT / "build/reach.json"
MODULES = [
    "metrics/definitions.py",
    "core/ranks.py",
    "sampling/laws.py",
    *(f"sampling/{name}.py" for name in ("designs", "expectations", "pools", "sums")),
    *(f"estimators/{name}.py" for name in ("corrected", "bias_variance", "least_squares", "literature", "unbiased")),
    *(f"estimators/{name}.py" for name in ("rank_laws", "pooled", "bounds", "draws", "solvers", "worst_laws")),
    *(f"evaluation/{name}.py" for name in ("per_instance", "differences", "comparisons", "paired_tests")),
    *(f"evaluation/{name}.py" for name in ("intervals", "exact_ranges", "joint_tests", "orders")),
    *("data/splits.py", "data/splitting.py"),
]
TESTS = ["metrics", "core", "sampling", "estimators", "evaluation", "data", "ranking", "analysis"]
"""Folders whose tests are tried, besides the examples in the modules themselves."""

SECONDS = 120  # of tests for one change
PATIENCE = 10  # a change counts as noticed if a test takes this many times as long, and as many seconds more
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult,
    ast.Mod: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


class Change(NamedTuple):
    """A change of one module: its line, the line before, and what becomes of the changed part."""

    module: str
    line: int
    column: int
    before: str
    after: str


class Changer(ast.NodeTransformer):
    """Counts the places inside functions where something can be changed, and changes the one with a number."""

    def __init__(self, place: int = -1) -> None:
        self.place, self.depth = place, 0
        self.places: list[tuple[int, int]] = []
        self.changed: ast.expr | None = None
        self.after: ast.expr | None = None

    def visit(self, node: ast.AST) -> Any:
        """Leave alone what runs on import, and what only describes: annotations and messages."""
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.arguments):
            return node
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: only asserts
            return node
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value is not None else None
            return node
        if isinstance(node, ast.FunctionDef):
            self.depth += 1
            node.body = [self.visit(each) for each in node.body]
            self.depth -= 1
            return node
        node = super().generic_visit(node)
        return self._change(node) if self.depth else node

    def _is_here(self, node: ast.expr) -> bool:
        self.places.append((node.lineno, node.col_offset))
        if len(self.places) - 1 != self.place:
            return False
        self.changed = self.after = node
        return True

    def _change(self, node: Any) -> Any:
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS and self._is_here(node):
            node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS and self._is_here(node):
            node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and self._is_here(node):
            node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        if isinstance(node, ast.IfExp | ast.If) and self._is_here(node.test):
            node.test = self.after = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert) and self._is_here(node):
            self.after = node.operand
            return node.operand
        return node


def changed(module: str, place: int) -> tuple[ast.Module, Change]:
    """Return the module with one change."""
    source, changer = (CODE / module).read_text(), Changer(place)
    tree = ast.fix_missing_locations(changer.visit(ast.parse(source)))
    assert changer.changed is not None
    assert changer.after is not None
    line, column = changer.changed.lineno, changer.changed.col_offset
    return tree, Change(module, line, column, source.splitlines()[line - 1].strip(), ast.unparse(changer.after))


def places(module: str) -> list[tuple[int, int]]:
    """Return line and column of each place where a module can be changed."""
    changer = Changer()
    changer.visit(ast.parse((CODE / module).read_text()))
    return changer.places


def drawn(modules: list[str], seed: int) -> list[tuple[str, int]]:
    """Return all modules and places in random order."""
    there = [(module, place) for module in modules for place in range(len(places(module)))]
    return [there[at] for at in np.random.default_rng(seed).permutation(len(there))]


def survivors(rows: dict[Change, dict[str, Any]]) -> Iterator[tuple[str, int]]:
    """Return modules and places of lines with a change that no test notices."""
    for module in MODULES:
        lines = {change.line for change, row in rows.items() if change.module == module and not row["noticed by"]}
        yield from ((module, place) for place, (line, _) in enumerate(places(module)) if line in lines)


def put(module: str, tree: ast.Module, functions: list[FunctionType]) -> None:
    """Give the functions of a loaded module the code of a changed one."""
    path = str(CODE / module)
    before = compile(ast.parse(Path(path).read_text()), path, "exec")
    new = {old: code for old, code in _pairs(before, compile(tree, path, "exec")) if old != code}
    there = [each for each in functions if each.__code__.co_filename == path and each.__code__ in new]
    assert there, "no function has the code that changes"
    for each in there:
        each.__code__ = new[each.__code__]


def _pairs(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    for old, new in zip(before.co_consts, after.co_consts, strict=False):
        if isinstance(old, CodeType) and isinstance(new, CodeType):
            yield old, new
            yield from _pairs(old, new)


class Reach(NamedTuple):
    """How long each test takes, and which tests reach each line of each module."""

    seconds: dict[str, float]
    tests: dict[str, dict[str, list[str]]]

    def ordered(self, change: Change, items: list[pytest.Item], seconds: float) -> list[pytest.Item]:
        """Return the tests that reach a change, the fastest first; those that the map does not know come before."""
        lines = self.tests[change.module]
        reached = set(lines[str(max(line for line in map(int, lines) if line <= change.line))])
        there = [item for item in items if item.nodeid in reached or item.nodeid not in self.seconds]
        there.sort(key=lambda item: self.seconds.get(item.nodeid, 0.0))
        spent = itertools.accumulate(self.seconds.get(item.nodeid, 0.0) for item in there)
        return [item for item, total in zip(there, spent, strict=True) if total <= seconds]


class Trials:
    """Plugin of pytest that tries changes instead of running the tests once."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not REACH.exists() and (failed := _forked(partial(_map, session))):
            raise SystemExit(f"a test fails without a change: {failed}")
        reach, rows = Reach(**json.loads(REACH.read_text())), read()
        functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
        gc.freeze()

        def tried(found: tuple[ast.Module, Change]) -> tuple[Change, str]:
            tree, change = found
            tests = reach.ordered(change, session.items, 1e9 if self.given.again else SECONDS)
            return change, _forked(partial(_test, tests, reach.seconds, partial(put, change.module, tree, functions)))

        @cache
        def check(test: str) -> None:
            own = [item for item in session.items if item.nodeid == test]
            if _forked(partial(_test, own, reach.seconds, lambda: None)):
                raise SystemExit(f"a test fails without a change: {test}")

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for change, by in pool.map(tried, list(self._chosen(rows))):
                check(by)
                print(*change, "->", by or "survived", flush=True)
                first = {"seed": self.given.seed, "at first": "noticed" if by else "survived", "why not": ""}
                row = rows.get(change, first)
                rows[change] = {**row, "noticed by": by, "why not": "" if by else row["why not"]}
                write(rows)
        return True

    def _chosen(self, rows: dict[Change, dict[str, Any]]) -> Iterator[tuple[ast.Module, Change]]:
        """Return what is tried: changes that survived, or enough new ones that make up the sample of the seed."""
        if self.given.again:
            found = itertools.starmap(changed, survivors(rows))
            yield from (each for each in found if each[1] in rows and not rows[each[1]]["noticed by"])
            return
        missing = self.given.changes - sum(row["seed"] == str(self.given.seed) for row in rows.values())
        found = itertools.starmap(changed, drawn(self.given.module or MODULES, self.given.seed))
        yield from itertools.islice((each for each in found if each[1] not in rows), max(missing, 0))


def read() -> dict[Change, dict[str, Any]]:
    """Return the changes that were tried, where their lines are now, each with what became of it."""
    rows = csv.DictReader(RESULTS.read_text().splitlines()) if RESULTS.exists() else []
    found = {}
    for row in rows:
        before, after = row.pop("before"), row.pop("after")
        change = Change(row.pop("module"), int(row.pop("line")), int(row.pop("column")), before, after)
        if (moved := _moved(change)) is not None:
            found[moved] = row
    return found


def _moved(change: Change) -> Change | None:
    """Return a change at the nearest line with the same text; None if there is no such line any more."""
    lines = (CODE / change.module).read_text().splitlines()
    same = [at for at, line in enumerate(lines, start=1) if line.strip() == change.before]
    return change._replace(line=min(same, key=lambda at: abs(at - change.line))) if same else None


def write(rows: dict[Change, dict[str, Any]]) -> None:
    with RESULTS.open("w", newline="") as file:
        names = [*Change._fields, "seed", "at first", "noticed by", "why not"]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(change._asdict() | rows[change] for change in sorted(rows))


def _forked(call: Callable[[], str]) -> str:
    """Call a function in a process of its own, without output; return its result, or what ended the process."""
    result = os.memfd_create("result")
    child = os.fork()
    if not child:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            os.write(result, call().encode())
            os._exit(0)
        except BaseException:
            os.write(result, traceback.format_exc().encode())
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(result) as file:
        file.seek(0)
        text = file.read()
    if status > 0:
        raise RuntimeError(text)
    return signal.Signals(-status).name if status else text


def _test(tests: list[pytest.Item], seconds: dict[str, float], change: Callable[[], None]) -> str:
    """Make a change, and return the first test that fails, if any: within limits of time and memory."""
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    change()
    for test, after in _in_order(tests):
        longest = PATIENCE * (1 + seconds.get(test.nodeid, 0.0))
        signal.setitimer(signal.ITIMER_PROF, longest)  # of processor time
        signal.alarm(int(30 * longest))  # where it waits for ever
        if _fails(test, after):
            return test.nodeid
    return ""


def _in_order(tests: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Return each test with the next one, which may need the same fixtures."""
    return itertools.zip_longest(tests, tests[1:])


def _fails(test: pytest.Item, after: pytest.Item | None) -> bool:
    test.config.hook.pytest_runtest_protocol(item=test, nextitem=after)
    return bool(test.session.testsfailed)


def _map(session: pytest.Session) -> str:
    """Run all tests once, and write down where each comes and how long it takes; return the first that fails."""
    import coverage

    traced = coverage.Coverage(data_file=None, config_file=False, include=[str(CODE / module) for module in MODULES])
    seconds: dict[str, float] = {}
    traced.start()
    for test, after in _in_order(session.items):
        traced.switch_context(test.nodeid)
        start = time.perf_counter()
        if _fails(test, after):
            return test.nodeid
        seconds[test.nodeid] = time.perf_counter() - start
    traced.stop()
    tests = {module: traced.get_data().contexts_by_lineno(str(CODE / module)) for module in MODULES}
    REACH.parent.mkdir(exist_ok=True)
    REACH.write_text(json.dumps({"seconds": seconds, "tests": tests}))
    return ""


def preload() -> None:
    """Import what takes long, so that forked processes need not."""
    for name in ("optimize", "special", "stats", "sparse", "linalg", "interpolate", "fft"):
        importlib.import_module(f"scipy.{name}")
    for module in CODE.glob("[cdefmrs]*/[a-z]*.py"):
        importlib.import_module(f"truerank.{module.parent.name}.{module.stem}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=100, help="size of the sample")
    parser.add_argument("--module", choices=MODULES, action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="try again what survived")
    options = ["-s", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--hypothesis-profile", "quick"]
    preload()
    tests = [*(ROOT / "tests" / name for name in TESTS), *(CODE / module for module in MODULES)]
    pytest.main([*options, *map(str, tests)], plugins=[Trials(parser.parse_args())])


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    main()
