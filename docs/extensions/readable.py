"""A Sphinx extension for what would otherwise look wrong on a page."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the functions below."""
    app.connect("autodoc-process-docstring", escape)
    app.connect("doctree-read", strip_blank_ends)
    app.add_transform(DarkFigures)
    app.connect("doctree-read", link_names)
    app.connect("doctree-read", unlink_metrics)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def escape(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep ``|R|`` from being a substitution, and an author's initial from starting a numbered list.

    Lines with a backslash are LaTeX and stay as they are.
    """
    lines[:] = [line if "\\" in line else _escaped(line) for line in lines]


def _escaped(line: str) -> str:
    plain = re.sub(r"^( *)([A-Z]\. )", r"\1\\\2", line)
    return re.sub(r"\|(\w[^|`]*)\|", r"\\|\1\\|", plain)


def strip_blank_ends(app: Sphinx, page: nodes.document) -> None:
    """Drop the blank line at the end of examples, which doctest needs and readers do not."""
    for block in page.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block[:] = [nodes.Text(block.rawsource)]


class DarkFigures(SphinxTransform):
    """Show the dark variant of a drawn figure on dark pages; the theme hides the other by its class."""

    default_priority = 400

    def apply(self, **options: Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            if image["uri"].endswith(".svg"):
                dark = image.deepcopy()
                dark["uri"] = str(PurePosixPath(image["uri"]).with_suffix(".dark.svg"))
                image["classes"].append("only-light")
                dark["classes"].append("only-dark")
                image.parent.insert(image.parent.index(image) + 1, dark)


def link_names(app: Sphinx, page: nodes.document) -> None:
    """Link names such as ``tr.rank``, also with arguments, with their description in the reference."""
    for literal in list(page.findall(nodes.literal)):
        found = re.match(r"tr\.([\w.]*\w)", literal.astext())
        if found and not isinstance(literal.parent, nodes.reference):
            target = f"truerank.{found[1]}"
            link = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=target, refexplicit=True)
            literal.replace_self(link)
            link += literal


def unlink_metrics(app: Sphinx, page: nodes.document) -> None:
    """Turn ``NDCG@10`` back into text, which docutils takes for an e-mail address."""
    for reference in list(page.findall(nodes.reference)):
        if reference.get("refuri", "").startswith("mailto:"):
            reference.replace_self(reference.children)
