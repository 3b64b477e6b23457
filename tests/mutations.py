"""Small changes to the code, one at a time: a test should notice each of them.

A change swaps an operator or a comparison, negates a condition, or adds one to a number. So many per module are drawn
at random, and each runs in a process of its own on the tests of its module, until one fails. What survives is listed
with its line; benchmarks/results/mutations.csv keeps all of them.

    python tests/mutations.py --each 20
    python tests/mutations.py --each 20 --module sampling/laws.py --seed 1
"""

import argparse
import ast
import csv
import importlib.abc
import importlib.util
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results/mutations.csv"
TESTS = {
    "metrics/definitions.py": [
        *("metrics/test_names.py", "metrics/test_whole_metrics.py", "metrics/test_graded.py"),
        *("metrics/test_every_metric.py", "evaluation/test_ties.py"),
    ],
    "core/ranks.py": ["ranking/test_ranks.py", "evaluation/test_ties.py", "ranking/test_depth.py"],
    "evaluation/per_instance.py": [
        "evaluation/test_ties.py",
        "evaluation/test_evaluation.py",
        "metrics/test_graded.py",
    ],
    "sampling/laws.py": ["sampling/test_laws.py", "sampling/test_every_design.py"],
    "estimators/bias_variance.py": ["estimators/test_corrected.py", "estimators/test_solvers.py"],
    "estimators/least_squares.py": ["estimators/test_least_squares.py", "estimators/test_corrected.py"],
    "estimators/literature.py": ["estimators/test_literature.py", "estimators/test_corrected.py"],
    "estimators/unbiased.py": ["estimators/test_unbiased.py", "estimators/test_estimators.py"],
    "evaluation/differences.py": ["evaluation/test_verdicts.py", "evaluation/test_comparison.py"],
    "data/splits.py": ["data"],
    "data/splitting.py": ["data"],
}
"""The tests of each module, those that find most first."""

SECONDS = 300  # of CPU time for one change; a loop that does not end counts as noticed
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult,
    ast.Mod: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


class Change(NamedTuple):
    """A change of one module: the number of the place, its line, and the line before and after."""

    module: str
    place: int
    line: int
    before: str
    after: str


class Changer(ast.NodeTransformer):
    """Counts the places where something can be changed, and changes the one with a number."""

    def __init__(self, place: int = -1) -> None:
        self.place, self.count = place, 0
        self.changed: ast.expr | None = None

    def visit(self, node: ast.AST) -> Any:
        """Leave alone what only describes: annotations, docstrings and messages."""
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return node
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value is not None else None
            return node
        if isinstance(node, ast.arguments):
            node.defaults = [self.visit(each) for each in node.defaults]
            return node
        if isinstance(node, ast.FunctionDef):
            node.args, node.body = self.visit(node.args), [self.visit(each) for each in node.body]
            return node
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return node
        return self._change(super().generic_visit(node))

    def _is_here(self, node: ast.expr) -> bool:
        self.count += 1
        if self.count - 1 != self.place:
            return False
        self.changed = node
        return True

    def _change(self, node: Any) -> Any:
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS and self._is_here(node):
            node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS and self._is_here(node):
            node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and self._is_here(node):
            node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        if isinstance(node, ast.IfExp | ast.If) and self._is_here(node.test):
            node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert) and self._is_here(node):
            return node.operand
        return node


def source_of(module: str) -> str:
    return (ROOT / "src/truerank" / module).read_text()


def changed(module: str, place: int) -> tuple[ast.Module, Change]:
    """Return the module with one change."""
    changer, lines = Changer(place), source_of(module).splitlines()
    tree = ast.fix_missing_locations(changer.visit(ast.parse(source_of(module))))
    assert changer.changed is not None
    line = changer.changed.lineno
    after = (
        ast.unparse(changer.changed) if not isinstance(changer.changed, ast.Constant) else str(changer.changed.value)
    )
    return tree, Change(module, place, line, lines[line - 1].strip(), after)


def n_places(module: str) -> int:
    changer = Changer()
    changer.visit(ast.parse(source_of(module)))
    return changer.count


class _Loader(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Gives the interpreter a changed module instead of the one on disk."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.name, self.tree = "truerank." + module.removesuffix(".py").replace("/", "."), tree
        self.path = str(ROOT / "src/truerank" / module)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> Any:
        return compile(self.tree, self.path, "exec")

    def get_source(self, fullname: str) -> str:
        return Path(self.path).read_text()


def is_noticed(module: str, tree: ast.Module) -> bool:
    """Run the tests of a module in a forked process, which has loaded all but truerank."""
    child = os.fork()
    if not child:
        _test(module, tree)
    return os.waitpid(child, 0)[1] != 0


def _test(module: str, tree: ast.Module) -> None:
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.meta_path.insert(0, _Loader(module, tree))
    files = [str(ROOT / "tests" / each) for each in TESTS[module]]
    options = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--hypothesis-profile", "quick"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    os._exit(int(pytest.main([*options, *files])))


def chosen(each: int, modules: list[str], seed: int) -> Iterator[tuple[str, int]]:
    """Return modules and places, one of each module after the other."""
    orders = [np.random.default_rng(seed).permutation(n_places(module)) for module in modules]
    for at in range(each):
        yield from ((module, int(order[at])) for module, order in zip(modules, orders, strict=True) if at < len(order))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=20, help="changes per module")
    parser.add_argument("--module", choices=TESTS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    done = {(row["module"], row["place"]) for row in csv.DictReader(RESULTS.open())} if RESULTS.exists() else set()
    preload()
    modules = given.module or list(TESTS)
    for module, place in chosen(given.each, modules, given.seed):
        if (module, str(place)) in done:
            continue
        tree, change = changed(module, place)
        outcome = "noticed" if is_noticed(module, tree) else "survived"
        print(outcome, *change, flush=True)
        with RESULTS.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(
                [[*Change._fields, "outcome"]] * (not file.tell()) + [[*change, outcome]]
            )

    survivors = {row["module"] for row in csv.DictReader(RESULTS.open()) if row["outcome"] == "survived"}
    for module in sorted(set(modules) - survivors):  # where one survives, the tests pass
        assert not is_noticed(module, ast.parse(source_of(module))), f"tests of {module} fail without a change"


def preload() -> None:
    """Import what takes long, so that forked processes need not."""
    for name in ("hypothesis.strategies", "hypothesis.extra.numpy", "mpmath", "pandas", "pyarrow.parquet"):
        importlib.import_module(name)
    for name in ("pytest", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats", "click", "lazy_loader"):
        importlib.import_module(name)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    main()
