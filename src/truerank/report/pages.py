"""HTML pages of one file: the report and the explorer."""

from __future__ import annotations

import base64
import hashlib
import html
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

import truerank as tr
from truerank.analysis.risks import check_exact
from truerank.core.checks import check_kind
from truerank.core.ranks import named_ranks
from truerank.core.tables import Tabular, json_text, shown_name
from truerank.core.threads import progress_bar
from truerank.estimators.corrected import AnyMetric
from truerank.formats.writing import PAGE_ENDINGS, check_writable, replacing
from truerank.report import blocks
from truerank.report.headlines import headline
from truerank.report.report_data import ReportData
from truerank.report.sections import SECTIONS, TERMS
from truerank.sampling.designs import AnyDesign, as_design

LIBRARIES = ("vendor/d3-7.9.2.min.js", "vendor/plot-0.6.17.min.js")
_IMPORT = re.compile(r'^import \{(\s*\w+(?:,\s*\w+)*,?\s*)\} from "\./(\w+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function|async function) (\w+))", re.MULTILINE)
_MODULE_SYNTAX = re.compile(r"^\s*(?:import|export)\b.*|\bimport *[(.].*", re.MULTILINE)
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


def write_page(data: Mapping[str, Any], path: str | Path, script: str) -> None:
    """Write a page that shows the data by a script, a file of the folder `page`, and the modules that it imports."""
    check_writable(path, PAGE_ENDINGS)
    with replacing(path) as (file,):
        file.write(page(data, script).encode())


def page(data: Mapping[str, Any], script: str) -> str:
    """Return the text of a page.

    Examples
    --------
    >>> text = page({"title": "A </title>", "name": "</script><script>alert(1)</script>"}, "report.js")
    >>> "alert(1)</script>" in text, "A &lt;/title&gt;" in text
    (False, True)
    """
    style = _read("page/page.css")
    libraries = [_read(name) for name in LIBRARIES]
    own = bundled(script, files(__package__) / "page")
    return Template(_read("page/page.html")).substitute(
        policy=_policy([*libraries, own], [style, _CHART_STYLE]),
        title=html.escape(data["title"]),
        style=style,
        data=embedded_json(data),
        libraries="\n".join(f"<script>{text}</script>" for text in libraries),
        script=own,
    )


def bundled(script: str, folder: Traversable) -> str:
    """Return a JavaScript module of a folder, and everything it imports, as one module without imports.

    Each file becomes a function that returns what the file exports, so that its other names stay private.
    """
    texts, waiting = dict[str, str](), [script]
    while waiting:
        name = waiting.pop()
        texts[name] = (folder / name).read_text(encoding="utf-8")
        waiting += [each for each in _imported(texts[name]) if each not in texts]
    order = TopologicalSorter({name: _imported(text) for name, text in texts.items()}).static_order()
    return "\n".join(["const modules = {};", *(_enclosed(name, texts[name]) for name in order)])


def _imported(text: str) -> list[str]:
    return [name for _, name in _IMPORT.findall(text)]


def _enclosed(name: str, text: str) -> str:
    exports = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub("", _IMPORT.sub(r'const {\1} = modules["\2"];', text))
    if other := _MODULE_SYNTAX.search(body):
        raise ValueError(f"{name} has an import or export of a form that pages do not bundle: {other[0]!r}.")
    return f'modules["{name}"] = (() => {{\n{body}return {{{exports}}};\n}})();'


def embedded_json(data: Mapping[str, Any]) -> str:
    r"""Return JSON that is safe inside a script element: nothing in it can end the element or open another.

    Examples
    --------
    >>> embedded_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json_text(data, compact=True)
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


_MOST = 6
_TITLE = "What would sampled candidates show?"
# the running example of Krichene & Rendle, section 3.2
_PAPER = {
    "A": tr.Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
    "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
    "B": tr.Ranks.from_ranks([40, 40, 8437, 9266, 4482], n=10_000),
}


def write_explorer(ranks: Mapping[str, tr.Ranks] | None, path: str | Path) -> None:
    """Write a page to explore sampled metrics to one HTML file that opens in any browser.

    Sliders set the number of candidates n, the number of sampled candidates m, the cut-off k and gamma; menus choose
    the metric, the design (uniform or inverse sampling) and the correction. The page shows the expected metric, its
    bias and its deviation by rank, and how two recommenders would compare. It computes all of this itself, and agrees
    with the library to 1e-9.

    Parameters
    ----------
    ranks : dict of name to Ranks, or None
        Exact ranks of two to six recommenders, whose pairs can be chosen besides those of the paper's example. Every
        relevant item counts as the only one of an instance, all instances have as many candidates as the largest, and
        ties are broken at random (seed 0). None: only the paper's example.
    path : path
        The .html file to write.

    Examples
    --------
    >>> import pathlib, tempfile, truerank as tr
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "explore.html"
    >>> tr.write_explorer(None, path)
    >>> path.stat().st_size < 1_500_000
    True
    """
    given = {} if ranks is None else named_ranks(ranks)
    if given and not 2 <= len(given) <= _MOST:
        raise tr.InputError(f"the explorer compares 2 to {_MOST} recommenders, got {len(given)}.")
    for one in given.values():
        check_exact(one)
        if not one.above.size:
            raise tr.InputError("every recommender must have an instance with a relevant item.")
    studies = {"Yours": _counted(given), "The paper's": _counted(_PAPER)}
    data = {"title": _TITLE, "recommenders": [], "metrics": {}, "studies": studies}
    write_page(data, path, "explorer.js")


def _counted(ranks: Mapping[str, tr.Ranks]) -> list[dict[str, Any]]:
    """Return how often each rank occurs, and the number of candidates, for each recommender."""
    return [{"name": name, "n": int(one.n_candidates.max()), "ranks": _counts(one)} for name, one in ranks.items()]


def _counts(ranks: tr.Ranks) -> list[list[int]]:
    above = ranks.break_ties("random", rng=0).above if ranks.has_ties else ranks.above
    found, times = np.unique(above + 1, return_counts=True)
    return np.stack([found, times], axis=1).tolist()


TITLE = "How good are these recommenders?"


def write_report(
    ranks_or_results: tr.Ranks | Mapping[str, tr.Ranks] | Tabular[Any] | Sequence[Tabular[Any]],
    path: str | Path,
    *,
    split: tr.Split | None = None,
    metrics: AnyMetric | Iterable[AnyMetric] | None = None,
    design: AnyDesign = 100,
    by: tr.Groups | Mapping[Any, Any] | Any | None = None,
    sampled: tr.Ranks | Mapping[str, tr.Ranks] | None = None,
    lists: Mapping[str, tr.Recommendations] | None = None,
    title: str = TITLE,
    progress: bool = False,
) -> None:
    """Write a report on recommenders, or on results, to one HTML file that opens in any browser.

    The file holds everything it needs and loads nothing.

    Parameters
    ----------
    ranks_or_results : Ranks, dict of name to Ranks, or results
        Recommenders by name, which the report compares on the instances that all of them have; or one or several
        results of `truerank.evaluate`, `truerank.compare`, `truerank.consistency` and others, whose tables it shows.
    path : path
        The .html file to write.
    split : Split, optional
        What the recommenders were trained and tested on, to show groups of users and of items.
    metrics : list of str, Metric or function, optional
        The metrics to choose from; the page begins with the first. By default NDCG@10, Recall@10, AP and AUC, corrected
        by ``~bv(0.1)`` if the ranks are sampled.
    design : SamplingDesign, str or int
        How many sampled candidates to compare with; they are sampled uniformly and without replacement.
    by : dict, dataframe or Groups, optional
        Groups of instances to show separately, as for `truerank.evaluate`.
    sampled : dict of name to Ranks, optional
        Sampled ranks of some of the recommenders: their estimates are shown beside the exact values.
    lists : dict of name to Recommendations, optional
        What the recommenders recommend: coverage, novelty with a `split`, and who gets what.
    title : str
        The heading.
    progress : bool
        Whether to show a progress bar, on a terminal only, when it takes more than a second.

    Examples
    --------
    >>> import pathlib, tempfile, truerank as tr
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> ranks = {"A": tr.Ranks.from_ranks([100] * 40, n=1_000), "B": tr.Ranks.from_ranks([5, 900] * 20, n=1_000)}
    >>> tr.write_report(ranks, path, metrics=["ap", "auc"])
    >>> path.stat().st_size < 1_500_000
    True
    """
    check_writable(path, PAGE_ENDINGS)
    check_kind("title", title, str)
    results = _as_results(ranks_or_results)
    if results:
        write_sections([_result_section(result) for result in results], path, title)
        return
    drawn, chosen = as_design(design), None if by is None else tr.Groups.of(by)
    if drawn != tr.UniformSampling(drawn.m):
        raise tr.InputError(f"a report compares with uniform samples without replacement, such as 100, got {drawn}.")
    beside = {"sampled": sampled, "lists": lists}
    data = ReportData.of(ranks_or_results, metrics, m=drawn.size, split=split, by=chosen, **beside)  # type: ignore[arg-type]
    bar = progress_bar("sections", progress, SECTIONS, delay=1.0, leave=False)
    found = [section for make in bar if (section := make(data)) is not None]
    write_sections(found, path, title, data)


def _as_results(given: object) -> list[Tabular[Any]]:
    """Return results as a list; it is empty if ranks were given."""
    several = list(given) if isinstance(given, list | tuple) else [given]
    results = [each for each in several if isinstance(each, Tabular)]
    if results and len(results) < len(several):
        raise tr.InputError("give ranks, or results, not both.")
    if not results:
        _check_ranks(given)
    return results


def _check_ranks(given: object) -> None:
    parts = given.values() if isinstance(given, Mapping) else [given]
    for part in parts:
        if isinstance(part, tr.Ranks):
            continue
        if isinstance(part, tr.Recommendations):
            raise tr.InputError(
                "a report is about ranks, not lists: read these with `truerank.read_lists`, or report on what "
                "`truerank.evaluate` returns for them."
            )
        raise tr.InputError(f"a report is about ranks by name, or about results, got {type(part).__name__}.")


def _result_section(result: Tabular[Any]) -> blocks.Section:
    """Return a section with the table of a result, as it is printed."""
    table = result.to_table()
    columns: blocks.Columns = [(name, "text") for name in table.header]
    rows = [[cell.text for cell in row] for row in table.rows]
    return blocks.Section(type(result).__name__, "", [blocks.TableBlock(columns, rows)], table.notes)


def write_sections(
    sections: Sequence[blocks.Section],
    path: str | Path,
    title: str,
    about: ReportData | None = None,
    others: Sequence[str] = (),
) -> None:
    """Write a report of given sections.

    Parameters
    ----------
    sections : list of Section
    path : path
    title : str
        The heading.
    about : ReportData, optional
        What the sentences at the top are about, the metrics that the reader can choose from, and the recommenders,
        which have colours and can be hidden.
    others : list of str
        Other recommenders that have colours.
    """
    metrics = () if about is None else about.metrics
    data = {
        "title": title,
        "headlines": {str(metric): vars(headline(about, metric)) for metric in metrics if about},
        "recommenders": [*(about.best_first(str(metrics[0])) if about else ()), *others],
        "metrics": {} if about is None else about.metric_names,
        "terms": TERMS | {shown_name(str(metric)): _first_line(metric.estimated) for metric in metrics},
        "sections": [section.content() for section in sections],
    }
    write_page(data, path, "report.js")


def _first_line(metric: tr.Metric) -> str:
    """Return what a metric is, without the numbers of equations."""
    return re.sub(r" \([^)]*(?:eq\.|section)[^)]*\)", "", inspect.cleandoc(type(metric).__doc__ or "").split("\n")[0])
