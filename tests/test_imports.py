"""What imports what: nothing heavy before it is needed, and no import against the flow of data."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import truerank as tr

SOURCE = Path(tr.__file__).parent

ROOMS = [
    ["core"],
    ["kernels"],
    ["formats"],
    ["data"],
    ["scoring"],
    ["recommenders"],
    ["sampling"],
    ["ranking"],
    ["recommending"],
    ["metrics"],
    ["estimators"],
    ["evaluation"],
    ["analysis"],
    ["report"],
    ["engines"],
    ["spark"],
    ["torch"],
    ["papers"],
    ["cli"],
    ["__main__"],
]
"""The rooms from where data enters to where results leave; each imports only from above."""

USERS_OF_THE_PACKAGE = {"report", "papers", "cli"}
"""Rooms that stand where a user stands, and may take public names from the package itself."""

HEAVY = ["numpy", "scipy", "pyarrow", "pandas", "polars", "narwhals", "matplotlib", "tqdm", "pyspark", "torch"]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


@cache
def modules() -> dict[str, Path]:
    return {module_name(path): path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}


@cache
def imported(path: Path) -> set[str]:
    """Return the truerank modules that a file imports anywhere, also inside functions and for types alone."""
    known = modules()
    tree = ast.parse(path.read_text())
    found = public_modules(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("truerank"):
            base = (node.module or "").removeprefix("truerank").lstrip(".")
            names = [f"{base}.{alias.name}".lstrip(".") for alias in node.names]
            found |= {name for name in [base, *names] if name in known}
    return found


def public_modules(tree: ast.Module) -> set[str]:
    """Return the modules whose public names a file takes from the package, as in ``tr.evaluate``."""
    texts = {dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {home(text.split(".")[1:]) for text in texts if text.startswith("tr.")} & modules().keys()


def dotted(node: ast.expr) -> str:
    """Return a name such as ``tr.metrics.Term``; what is not a name alone is empty."""
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def home(names: list[str]) -> str:
    """Return the module that defines what `names`, one after another, lead to in the package."""
    value: object = tr
    for name in names:
        value = getattr(value, name)
        if not isinstance(value, ModuleType):
            return getattr(value, "__module__", "").removeprefix("truerank.")
    return str(value.__name__).removeprefix("truerank.") if isinstance(value, ModuleType) else ""


def room(name: str) -> str:
    return name.partition(".")[0]


def test_every_module_is_in_a_room() -> None:
    assert {room(name) for name in modules()} == {name for rooms in ROOMS for name in rooms}


@pytest.mark.parametrize("name", sorted(modules()))
def test_imports_point_one_way(name: str) -> None:
    level = {each: depth for depth, rooms in enumerate(ROOMS) for each in rooms}
    others = {other for other in imported(modules()[name]) if room(other) != room(name)}
    against = {other for other in others if level[room(other)] > level[room(name)]}
    assert not against, f"{name} imports {against}, which come later in the flow of data"


def test_only_users_of_the_package_import_it() -> None:
    importers = {name for name, path in modules().items() if "\nimport truerank as tr\n" in path.read_text()}
    assert {room(name) for name in importers} <= USERS_OF_THE_PACKAGE


def test_no_cycles_inside_a_room() -> None:
    imports = {name: imported(path) for name, path in modules().items()}
    list(TopologicalSorter(imports).static_order())  # raises CycleError


def test_no_module_is_called_like_a_public_name() -> None:
    last = {name.rpartition(".")[2]: name for name in modules()}
    assert not set(last) & {name for name in dir(tr) if not isinstance(getattr(tr, name), ModuleType)}


def loaded_by(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    "statement",
    [
        "import truerank",
        "from truerank.cli import main\ntry:\n    main(['evaluate', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_used(statement: str) -> None:
    assert loaded_by(statement).isdisjoint(HEAVY)


def test_the_command_line_hears_ctrl_c_before_it_imports_anything() -> None:
    assert loaded_by("import truerank.cli") - loaded_by("") <= {"truerank", "__future__"}


def test_values_need_numpy_alone() -> None:
    loaded = loaded_by("import truerank as tr\ntr.values(tr.Ranks.from_ranks([1, 2], n=5), 'ap')")
    assert loaded & set(HEAVY) == {"numpy"}


RANKED = """
import numpy as np, truerank as tr
arrays = tr.Factors(np.ones((3, 2)), np.eye(4, 2)), np.eye(3, 4)
ranks = {name: tr.rank(given, train=[[0]], test=[[1], [2, 3]]) for name, given in zip("AB", arrays)}
print(tr.evaluate(ranks["A"], ["ndcg@10", "auc"]), tr.evaluate(ranks, "ap").rows())
"""


def test_ranking_and_evaluating_arrays_need_numpy_alone() -> None:
    script = f"{RANKED}\nimport sys\nprint('modules:', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.rpartition("modules:")[2].split()
    assert {name.split(".")[0] for name in loaded} & set(HEAVY) == {"numpy"}
    assert not {"numpy.ma", "numpy.random", "importlib.metadata"} & set(loaded)
    ours = {name.split(".")[1] for name in loaded if name.startswith("truerank.")}
    assert not ours & {"formats", "recommending", "analysis", "report"}
    assert not {"truerank.estimators.solvers", "truerank.sampling.laws", "truerank.evaluation.comparisons"} & set(
        loaded
    )


def test_every_public_name_loads_and_is_documented() -> None:
    names = dir(tr)
    assert {"Ranks", "evaluate", "values", "estimate"} <= set(names)
    for name in names:
        assert getattr(tr, name).__doc__, name
