"""The parts of the documentation that are generated."""

import runpy
from pathlib import Path

import truerank as tr

DOCS = Path(__file__).parents[1] / "docs"


def test_every_public_name_is_on_a_page_of_the_reference() -> None:
    reference = runpy.run_path(str(DOCS / "make_api.py"))
    stages = reference["public_names"]()
    assert sorted(name for names in stages.values() for name in names) == sorted(dir(tr))
    pages = "".join(reference["page"](stage, names) for stage, names in stages.items())
    modules = {"metrics"}
    assert not [name for name in set(dir(tr)) - modules if f":: truerank.{name}\n" not in pages]
