"""One self-contained HTML file from sections: styles, scripts and data inside it, and a policy that forbids the rest.

The browser runs only the scripts whose hashes the policy lists, applies only such styles, and loads nothing. The data
is a block of JSON in which no `<` is left, and the scripts show it as text only; so no name can become markup.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from truerank.display.render import json_text
from truerank.formats.writing import PAGE_ENDINGS, check_writable, replacing

LIBRARIES = ("vendor/d3-7.9.2.min.js", "vendor/plot-0.6.17.min.js")
CHART_SCRIPTS = (
    "dom.js", "state.js", "numbers.js", "tables.js", "looks.js", "cursor.js", "charts.js", "lines.js", "bars.js",
    "dots.js",
)  # fmt: skip
"""Files of the folder `page` that every page with tables and charts needs, in their order."""
# the <style> that Plot puts into each chart of class "chart"
_CHART_STYLE = """:where(.chart) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.chart text),
:where(.chart tspan) {
  white-space: pre;
}"""


def write_page(path: str | Path, title: str, data: Mapping[str, Any], scripts: Sequence[str]) -> None:
    """Write a page whose scripts, files of the folder `page`, show the data."""
    check_writable(path, PAGE_ENDINGS)
    with replacing(path) as (file,):
        file.write(page(title, data, scripts).encode())


def page(title: str, data: Mapping[str, Any], scripts: Sequence[str]) -> str:
    """Return the text of a page.

    Examples
    --------
    >>> text = page("A </title>", {"name": "</script><script>alert(1)</script>"}, ["dom.js"])
    >>> "alert(1)</script>" in text, "A &lt;/title&gt;" in text
    (False, True)
    """
    style = _read("page/page.css")
    libraries = [_read(name) for name in LIBRARIES]
    own = "\n".join(_read(f"page/{name}") for name in scripts)
    return Template(_read("page/page.html")).substitute(
        policy=_policy([*libraries, own], [style, _CHART_STYLE]),
        title=html.escape(title),
        style=style,
        data=embedded_json(data),
        scripts="\n".join(f"<script>{text}</script>" for text in [*libraries, own]),
    )


def embedded_json(data: Mapping[str, Any]) -> str:
    r"""Return JSON that can stand inside a script element: nothing in it can end the element or open another.

    Examples
    --------
    >>> embedded_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(json.loads(json_text(data)), separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    allowed = {"script-src": scripts, "style-src": styles}
    lists = [f"{kind} {' '.join(map(_source, texts))}" for kind, texts in allowed.items()]
    return "; ".join(["default-src 'none'", *lists, "base-uri 'none'", "form-action 'none'"])


def _source(text: str) -> str:
    """Return how a policy names an inline script or style: by its hash."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _read(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
