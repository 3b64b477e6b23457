"""What imports what: nothing heavy before it is needed, and no import against the flow of data."""

import ast
import subprocess
import sys
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
    ["papers"],
    ["cli"],
    ["__main__"],
]
"""The rooms from where data enters to where results leave; each imports only from above."""

USERS_OF_THE_PACKAGE = {"report", "papers", "cli"}
"""Rooms that stand where a user stands, and may take public names from the package itself."""

HEAVY = ["numpy", "scipy", "pyarrow", "pandas", "polars", "narwhals", "matplotlib", "tqdm", "pyspark"]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def modules() -> dict[str, Path]:
    return {module_name(path): path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}


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
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (text := ast.unparse(node)).startswith("tr."):
            module, attribute = tr, text.removeprefix("tr.").split(".")
            value = getattr(tr, attribute[0])
            while isinstance(value, ModuleType) and len(attribute) > 1:
                attribute.pop(0)
                module, value = value, getattr(value, attribute[0])
            if not isinstance(value, ModuleType):
                found |= {value.__module__.removeprefix("truerank.")}
    return found & modules().keys()


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
    importers = {name for name, path in modules().items() if "import truerank as tr\n" in path.read_text()}
    code = {name for name in importers if "\nimport truerank as tr\n" in modules()[name].read_text()}
    assert {room(name) for name in code} <= USERS_OF_THE_PACKAGE


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


def test_every_public_name_loads_and_is_documented() -> None:
    names = dir(tr)
    assert {"Ranks", "evaluate", "values", "estimate"} <= set(names)
    for name in names:
        assert getattr(tr, name).__doc__, name
