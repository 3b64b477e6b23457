"""What imports what: nothing heavy before it is needed, and no import against the flow of data."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import truerank as tr

SOURCE = Path(tr.__file__).parent

LAYERS = [
    ["errors"],
    ["arrays", "downloads"],
    ["sums", "threads"],
    ["formats.columns"],
    ["formats.tables", "formats.writing", "formats.arrays", "formats.negatives", "formats.vlnet"],
    ["formats.events"],
    ["interactions"],
    ["event_tables", "leaks"],
    ["split_files"],
    ["splits"],
    ["scorers"],
    ["compiled.vectors"],
    ["compiled.algebra", "compiled.counting"],
    ["compiled.narrow"],
    ["recommenders.files"],
    ["recommenders.models", "recommenders.cooccurrence", "recommenders.least_squares", "recommenders.inverse"],
    ["recommenders.ease", "recommenders.ials", "recommenders.itemknn", "recommenders.popularity"],
    ["recommenders.loading"],
    ["kernels"],
    ["sampling.laws", "sampling.drawing"],
    ["sampling.designs", "sampling.expectations"],
    ["rank_checks", "rank_files", "render"],
    ["ranks"],
    ["truth"],
    ["lists", "rank_tables"],
    ["ranking", "challenge"],
    ["sampling.ranking"],
    ["metrics"],
    ["graded"],
    ["corrections.nodes", "corrections.priors"],
    ["corrections.least_squares"],
    ["corrections.spectral"],
    ["corrections.corrected"],
    ["names"],
    ["corrections.tables"],
    ["values"],
    ["estimates", "risk"],
    ["consistency", "evaluation"],
    ["plots"],
    ["papers.krichene_rendle_2020.published", "papers.krichene_rendle_2020.cells"],
    ["papers.krichene_rendle_2020.toy", "papers.krichene_rendle_2020.experiment"],
    ["papers.krichene_rendle_2020.movielens", "papers.krichene_rendle_2020.figures"],
    ["papers.krichene_rendle_2020.reproduction"],
    ["cli"],
    ["__main__"],
]
"""The modules from where data enters to where results leave; each imports only from above."""

HEAVY = ["numpy", "scipy", "pyarrow", "pandas", "polars", "narwhals", "numba", "matplotlib", "tqdm"]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def modules() -> dict[str, Path]:
    return {module_name(path): path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported(path: Path) -> set[str]:
    """Return the truerank modules that a file imports anywhere, also inside functions."""
    known = modules()
    found = set()
    tree = ast.parse(path.read_text())
    for_types = [node for block in ast.walk(tree) if is_for_types(block) for node in ast.walk(block)]
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("truerank"):
            base = (node.module or "").removeprefix("truerank").lstrip(".")
            names = [f"{base}.{alias.name}".lstrip(".") for alias in node.names]
            found |= {name for name in [base, *names] if name in known}
    return found


def test_every_module_has_its_layer() -> None:
    assert sorted(name for layer in LAYERS for name in layer) == sorted(modules())


@pytest.mark.parametrize("name", sorted(modules()))
def test_imports_point_upwards(name: str) -> None:
    level = {module: depth for depth, layer in enumerate(LAYERS) for module in layer}
    against = {other for other in imported(modules()[name]) if level[other] >= level[name]}
    assert not against, f"{name} imports {against}, which come later in the flow of data"


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


def test_values_need_numpy_alone() -> None:
    loaded = loaded_by("import truerank as tr\ntr.values(tr.Ranks.from_ranks([1, 2], n=5), 'ap')")
    assert loaded & set(HEAVY) == {"numpy"}


def test_every_public_name_loads_and_is_documented() -> None:
    names = dir(tr)
    assert {"Ranks", "evaluate", "values", "estimate"} <= set(names)
    for name in names:
        assert getattr(tr, name).__doc__, name
