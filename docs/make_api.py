"""Write the API reference, one page per stage, to docs/api: ``python docs/make_api.py``.

The public names and the stages that they belong to are read from ``truerank/__init__.pyi``.
"""

import ast
import importlib
import inspect
from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import truerank as tr
from truerank.formats.writing import make_folder, write_text

TARGET = Path(__file__).with_name("api")
STUB = Path(tr.__file__).with_suffix(".pyi")
TITLES = {
    "core": "Ranks and errors",
    "data": "Data and splits",
    "formats": "Files",
    "scoring": "Scorers",
    "recommenders": "Baseline recommenders",
    "sampling": "Sampling designs",
    "ranking": "Ranking",
    "recommending": "Recommended lists",
    "metrics": "Metrics",
    "estimators": "Corrections",
    "evaluation": "Evaluation and comparison",
    "analysis": "What a study can show",
    "report": "Reports",
    "spark": "Spark",
    "torch": "PyTorch",
}
"""Titles of the stages, in the order of the data; another folder has its own name as title and comes last."""
EXPERIMENTAL = {"ScoreStore", "check_evaluator", "plan_scores", "race", "rank_triples"}
"""Names that may change in any release; docs/stability.md says what holds for the others."""
INDEX = """# Python API

Everything below is a name of the package: `import truerank as tr`, then `tr.rank`. What is not listed here may change;
[Stability and support](../stability) says what holds for what is.

```{toctree}
:maxdepth: 2

%s
```
"""


def public_names() -> dict[str, list[str]]:
    """Return the public names of each stage, in the order of `TITLES`."""
    names = defaultdict(list)
    for node in ast.parse(STUB.read_text()).body:
        for stage, name in _exported(node):
            names[stage].append(name)
    known = list(TITLES)
    return dict(sorted(names.items(), key=lambda item: known.index(item[0]) if item[0] in known else len(known)))


def _exported(node: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield (node.module or alias.name).split(".")[0], alias.asname or alias.name


def page(stage: str, names: list[str]) -> str:
    """Return the page of a stage: its purpose, a table of its names, and the docstring of each."""
    purpose = inspect.getdoc(importlib.import_module(f"truerank.{stage}")) or ""
    listed = [each for name in names for each in _with_members(name)]
    parts = [f"# {TITLES.get(stage, stage.capitalize())}", purpose.splitlines()[0]]
    if young := [f"`{name}`" for name in listed if name in EXPERIMENTAL]:
        parts += [f"Experimental, and free to change in any release: {', '.join(young)}."]
    parts += [_directives([_summary(listed), *map(_documented, listed)])]
    return "\n\n".join(parts) + "\n"


def _with_members(name: str) -> list[str]:
    """Return a name, or the names in it if it is a module."""
    found = getattr(tr, name)
    if not inspect.ismodule(found):
        return [name]
    own = [each for each, value in vars(found).items() if getattr(value, "__module__", None) == found.__name__]
    public = getattr(found, "__all__", [each for each in own if not each.startswith("_")])
    return [f"{name}.{each}" for each in public]


def _directives(directives: list[str]) -> str:
    return "```{eval-rst}\n" + "\n\n".join(f".. {each}" for each in directives) + "\n```"


def _summary(names: list[str]) -> str:
    return "autosummary::\n   :nosignatures:\n\n" + "\n".join(f"   ~truerank.{name}" for name in names)


def _documented(name: str) -> str:
    found = attrgetter(name)(tr)
    if not inspect.isclass(found):
        return f"autofunction:: truerank.{name}"
    inherited = "" if issubclass(found, Exception) else "\n   :inherited-members: object"
    return f"autoclass:: truerank.{name}\n   :members:{inherited}"


def main() -> None:
    make_folder(TARGET)
    for old in TARGET.glob("*.md"):
        old.unlink()
    pages = public_names()
    for stage, names in pages.items():
        write_text(TARGET / f"{stage}.md", page(stage, names))
    write_text(TARGET / "index.md", INDEX % "\n".join(pages))


if __name__ == "__main__":
    main()
