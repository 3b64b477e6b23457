"""The report: one HTML file with what there is to know about recommenders, or about results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from truerank.corrections.reading import AnyMetric
from truerank.data.splits import Split
from truerank.display.tables import Tabular
from truerank.errors import InputError
from truerank.evaluation.groups import Groups
from truerank.formats.writing import PAGE_ENDINGS, check_writable
from truerank.lists.recommendations import Recommendations
from truerank.ranking.ranks import Ranks
from truerank.report.blocks import Column, Section, TableBlock
from truerank.report.headlines import headline
from truerank.report.material import Material
from truerank.report.pages import CHART_SCRIPTS, write_page
from truerank.report.sections import (
    comparisons,
    groups,
    metrics,
    provenance,
    rank_distributions,
    rank_weights,
    sample_sizes,
    ties,
)

SECTIONS: tuple[Callable[[Material], Section | None], ...] = (
    metrics.section,
    comparisons.section,
    groups.section,
    rank_distributions.section,
    sample_sizes.section,
    rank_weights.section,
    ties.section,
    provenance.section,
)
"""The sections of a report, in their order."""
TITLE = "How good are these recommenders?"
_SCRIPTS = (*CHART_SCRIPTS, "report.js")


def write_report(
    ranks_or_results: Ranks | Mapping[str, Ranks] | Tabular | Sequence[Tabular],
    path: str | Path,
    *,
    split: Split | None = None,
    metrics: AnyMetric | Iterable[AnyMetric] | None = None,
    m: int = 100,
    by: Groups | Mapping[Any, Any] | Any | None = None,
    title: str = TITLE,
    progress: bool = False,
) -> None:
    """Write a report on recommenders, or on results, to one HTML file that opens in any browser.

    The file holds everything it needs and loads nothing.

    Parameters
    ----------
    ranks_or_results : Ranks, dict of name to Ranks, or results
        Recommenders by name, of which the report compares the instances that all have; or what `truerank.evaluate`,
        `truerank.compare`, `truerank.consistency` and the like return, one or several, of which it shows the tables.
    path : path
        The .html file to write.
    split : Split, optional
        What the recommenders were trained and tested on, to show groups of users and of items.
    metrics : list of str, Metric or function, optional
        Those to show; the sentence on top is about the first. By default NDCG@10, Recall@10, AP and AUC, corrected by
        ``~bv(0.1)`` if the ranks are sampled.
    m : int
        How many sampled candidates to compare with.
    by : dict, dataframe or Groups, optional
        Groups of instances to show separately, as for `truerank.evaluate`.
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
    results = _as_results(ranks_or_results)
    if results:
        write_sections(path, [_result_section(result) for result in results], title=title)
        return
    chosen = None if by is None else Groups.of(by)
    material = Material.of(ranks_or_results, metrics, m=m, split=split, by=chosen)  # type: ignore[arg-type]
    bar = tqdm(SECTIONS, desc="sections", disable=None if progress else True, delay=1.0, leave=False)
    found = [section for make in bar if (section := make(material)) is not None]
    write_sections(
        path,
        found,
        title=title,
        sentence=headline(material),
        recommenders=list(material.ranks),
        metrics=material.metric_names,
    )


def _as_results(given: object) -> list[Tabular]:
    """Return results as a list; it is empty if ranks were given."""
    several = list(given) if isinstance(given, list | tuple) else [given]
    results = [each for each in several if isinstance(each, Tabular)]
    if results and len(results) < len(several):
        raise InputError("give ranks, or results, not both.")
    if not results:
        _check_ranks(given)
    return results


def _check_ranks(given: object) -> None:
    parts = given.values() if isinstance(given, Mapping) else [given]
    for part in parts:
        if isinstance(part, Recommendations):
            raise InputError(
                "a report is about ranks, not lists: read these with `truerank.read_lists`, or report on what "
                "`truerank.evaluate` says of them."
            )
        if not isinstance(part, Ranks):
            raise InputError(f"a report is about ranks by name, or about results, got {type(part).__name__}.")


def _result_section(result: Tabular) -> Section:
    """Return a section with the table of a result, as it is printed."""
    table = result.to_table()
    columns = [Column(name, "text") for name in table.header]
    rows = [[cell.text for cell in row] for row in table.rows]
    return Section(type(result).__name__, "", [TableBlock(columns, rows)], table.notes)


def write_sections(
    path: str | Path,
    sections: Sequence[Section],
    *,
    title: str,
    sentence: str = "",
    recommenders: Sequence[str] = (),
    metrics: Mapping[str, str] | None = None,
) -> None:
    """Write a report of given sections.

    Parameters
    ----------
    path : path
    sections : list of Section
    title, sentence : str
        The heading, and what stands below it in large letters.
    recommenders : list of str
        Those that have colours and can be hidden.
    metrics : dict of text form to shown name
        Those that the reader can choose from.
    """
    data = {
        "title": title,
        "sentence": sentence,
        "recommenders": list(recommenders),
        "metrics": dict(metrics or {}),
        "sections": [section.content() for section in sections],
    }
    write_page(path, title, data, _SCRIPTS)
