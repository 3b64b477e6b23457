"""The documentation names what exists, and all of it."""

import re
import runpy
from pathlib import Path
from types import ModuleType

import pytest

import truerank as tr

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def test_every_public_name_is_on_a_page_of_the_reference() -> None:
    reference = runpy.run_path(str(DOCS / "make_api.py"))
    stages = reference["public_names"]()
    assert sorted(name for names in stages.values() for name in names) == sorted(dir(tr))
    pages = "".join(reference["page"](stage, names) for stage, names in stages.items())
    described = [name for name in dir(tr) if not isinstance(getattr(tr, name), ModuleType)]
    described += [f"metrics.{name}" for name in dir(tr.metrics)]
    assert [name for name in described if f":: truerank.{name}\n" not in pages] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_pages_name_what_exists(page: Path) -> None:
    named = set(re.findall(r"\btr\.([A-Za-z_]\w*)", page.read_text()))
    assert sorted(named - set(dir(tr))) == []


def test_pages_with_shell_examples_have_python_ones() -> None:
    """Without any, pytest would not collect the page, and docs/conftest.py could not add the shell examples."""
    texts = {page.name: page.read_text() for page in DOCS.rglob("*.md")}
    shell = {name for name, text in texts.items() if "```console" in text}
    assert shell
    assert {name for name in shell if ">>> " not in texts[name]} == set()


def test_links_of_the_readme_lead_somewhere() -> None:
    readme = DOCS.parent / "README.md"
    targets = re.findall(r"^\[[\w-]+\]: (\S+)$", readme.read_text(), flags=re.MULTILINE)
    assert targets
    assert [target for target in targets if "://" not in target and not (readme.parent / target).is_file()] == []
