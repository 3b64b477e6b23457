"""Sections on users: where they differ, by groups, and what is recommended to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import truerank as tr
from truerank.core.checks import Floats
from truerank.core.tables import shown_name
from truerank.evaluation.differences import leading, seen_from
from truerank.report import blocks
from truerank.report.headlines import foremost
from truerank.report.report_data import ReportData

_USERS_TEXT = (
    "A mean hides users. The bars show for what share of the users each recommender is better, on the right, and "
    "worse, on the left, than the best one; for the others there is no difference. Below are the differences between "
    "the top two, by group, and the users for whom they differ most."
)
# shown of those who gain most, and of those who lose most
_HALF = 5
_RANKS_SHOWN = 3


def users_section(data: ReportData) -> blocks.Section | None:
    """Return who is better and worse off, differences by group, and the users who differ most, by the chosen metric."""
    if data.comparison is None or not data.exact:
        return None
    found = {str(metric): data.comparison.of(str(metric)) for metric in data.metrics}
    pairs = {metric: foremost(own) for metric, own in found.items()}
    parts: list[blocks.PageBlock] = [
        blocks.ByMetric({metric: blocks.Paragraph(_shares_sentence(pair)) for metric, pair in pairs.items()}),
        blocks.ByMetric({metric: _shares(data, own) for metric, own in found.items()}),
    ]
    by_group = [
        blocks.ByMetric({metric: _differences_by_group(data, pair, what, groups) for metric, pair in pairs.items()})
        for what, groups in _ways(data)
    ]
    parts += [blocks.Beside(by_group)] if by_group else []
    parts.append(blocks.ByMetric({str(metric): _most_different(data, metric, pairs) for metric in data.metrics}))
    return blocks.Section("Where users differ", _USERS_TEXT, parts)


def _shares_sentence(pair: tr.Difference) -> str:
    low, high = pair.better_off_interval()
    better, least, most, worse = (f"{100 * share:.1f} %" for share in (pair.better_off, low, high, pair.worse_off))
    return (
        f"{shown_name(pair.metric)}: {better} of the users ({least} to {most}) are better off with {pair.recommender} "
        f"than with {pair.baseline}, {worse} are worse off."
    )


def _shares(data: ReportData, differences: Sequence[tr.Difference]) -> blocks.Shares:
    first = leading(differences)
    own = {each.baseline: each.reversed() for each in seen_from(first, differences)}
    names = [name for name in data.best_first(differences[0].metric) if name != first]
    shares = [blocks.Share(name, own[name].better_off, own[name].worse_off, [name, first]) for name in names]
    return blocks.Shares(blocks.Axis(f"share of users, {shown_name(differences[0].metric)}, against {first}"), shares)


def _differences_by_group(data: ReportData, pair: tr.Difference, what: str, groups: tr.Groups) -> blocks.Dots:
    both = {name: data.ranks[name] for name in (pair.recommender, pair.baseline)}
    chosen = next(metric for metric in data.metrics if str(metric) == pair.metric)
    found = tr.compare(both, chosen, by=groups, baseline=pair.baseline)
    dots = [
        blocks.Dot(f"{each.group}, n = {each.n:,}", each.difference, *each.confidence_interval(),
                   [each.recommender, each.baseline])
        for each in found.differences if each.n
    ]  # fmt: skip
    axis = blocks.Axis(f"{pair.recommender} − {pair.baseline}, {shown_name(pair.metric)}, {what}")
    return blocks.Dots(axis, dots, zero=True, interval="adjusted interval")


def _most_different(data: ReportData, metric: tr.Metric, pairs: dict[str, tr.Difference]) -> blocks.TableBlock:
    """Return the users with the largest gains, and those with the largest losses, between the top two."""
    pair = pairs[str(metric)]
    first, second = (data.ranks[name] for name in (pair.recommender, pair.baseline))
    values = tr.values(first, metric), tr.values(second, metric)
    names = np.arange(len(first)) if first.ids is None else first.ids
    rows = [
        [str(names[at]), *(float(own[at]) for own in values), float(values[0][at] - values[1][at]),
         *(_best_ranks(one, at) for one in (first, second))]
        for at in _extremes(values[0] - values[1])
    ]  # fmt: skip
    columns: blocks.Columns = [
        ("user", "text"), (pair.recommender, "number"), (pair.baseline, "number"), ("difference", "signed"),
        (f"ranks by {pair.recommender}", "text"), (f"ranks by {pair.baseline}", "text"),
    ]  # fmt: skip
    return blocks.TableBlock(columns, rows, [[pair.recommender, pair.baseline]] * len(rows))


def _extremes(differences: Floats) -> list[int]:
    """Return the positions of the largest and the smallest differences, the largest first; zeros are left out."""
    order = np.argsort(-differences, kind="stable")
    rising = [int(at) for at in order if differences[at] > 0]
    falling = [int(at) for at in order if differences[at] < 0]
    return [*rising[:_HALF], *falling[-_HALF:]]


def _best_ranks(ranks: tr.Ranks, at: int) -> str:
    """Return the best ranks of an instance's relevant items as text; of tied ones the mean rank."""
    own = ranks[at : at + 1]
    places = np.sort(own.above + 1 + own.tied / 2)
    shown = ", ".join(f"{place:,.10g}" for place in places[:_RANKS_SHOWN])
    return shown + (f" and {places.size - _RANKS_SHOWN} more" if places.size > _RANKS_SHOWN else "")


_GROUPS_TEXT = (
    "The same metrics by group, with 95 % intervals and the number of instances. A recommender that is good on average "
    "may be poor for users with few interactions, or for items that are rarely chosen."
)


def groups_section(data: ReportData) -> blocks.Section | None:
    """Return small charts of the chosen metric, one per group, for each way to group."""
    charts: list[blocks.PageBlock] = []
    notes: list[str] = []
    for what, groups in _ways(data):
        found = tr.evaluate(data.ranks, data.metrics, by=groups)
        charts.append(blocks.ByMetric({metric: _panels(data, found, metric, what) for metric in found.metrics}))
        notes += found.notes
    return blocks.Section("Groups", _GROUPS_TEXT, charts, tuple(dict.fromkeys(notes))) if charts else None


def _ways(data: ReportData) -> Iterator[tuple[str, tr.Groups]]:
    if data.by is not None:
        yield "group", data.by
    if data.split is not None:
        yield "users by activity", tr.by_activity(data.split)
        if all(one.items is not None for one in data.ranks.values()):
            yield "items by popularity", tr.by_popularity(data.split)


def _panels(data: ReportData, found: tr.Evaluation, metric: str, what: str) -> blocks.Panels:
    """Return a panel per group that has instances, with the recommenders in the order of the whole."""
    panels = []
    order = data.best_first(metric) if metric in data.metric_names else found.recommenders
    for group in found.groups:
        own = {name: found[name, metric, group] for name in order if name in found.recommenders}
        dots = [blocks.Dot(name, *_cell(each), [name], each.determined) for name, each in own.items() if each.n]
        if dots:
            panels.append(blocks.Panel(group, f"n = {max(each.n for each in own.values()):,}", dots))
    return blocks.Panels(blocks.Axis(f"{shown_name(metric)}, {what}"), panels)


def _cell(found: tr.Estimate) -> tuple[float, float, float]:
    return found.mean, *found.confidence_interval()


_LISTS_TEXT = (
    "What is recommended, whether it is relevant or not: the share of the catalogue that anybody is recommended "
    "(coverage), how unequally items are recommended (Gini index){more}. The items that most users get are listed last."
)
_NOVELTY_TEXT = ", how surprising they are in bits (novelty), and the share of the lists in the long tail"
_MOST_RECOMMENDED = 5


def lists_section(data: ReportData) -> blocks.Section | None:
    """Return metrics of the recommended lists, novelty by activity of the users, and the items that most users get."""
    if not data.lists:
        return None
    k, train = min(one.k for one in data.lists.values()), None if data.split is None else data.split.train
    metrics = [
        f"{name}@{k}" for name in ("coverage", "gini", *(("novelty", "tail-share") if train is not None else ()))
    ]
    found = tr.evaluate(data.lists, metrics, train=train)
    columns: blocks.Columns = [("recommender", "text"), *((shown_name(name), "estimate") for name in metrics)]
    rows = [[name, *(_cell(found[name, each]) for each in metrics)] for name in data.lists]
    parts: list[blocks.PageBlock] = [blocks.TableBlock(columns, rows, [[name] for name in data.lists])]
    if data.split is not None:
        by = tr.evaluate(data.lists, f"novelty@{k}", train=train, by=tr.by_activity(data.split))
        parts.append(_panels(data, by, f"novelty@{k}", "users by activity"))
    parts.append(_most_recommended(data, k))
    text = _LISTS_TEXT.format(more=_NOVELTY_TEXT if train is not None else "")
    return blocks.Section("Recommended lists", text, parts, found.notes)


def _most_recommended(data: ReportData, k: int) -> blocks.TableBlock:
    columns: blocks.Columns = [
        ("recommender", "text"),
        ("users", "count"),
        (f"most recommended items (share of users with them in the top {k})", "text"),
    ]
    rows = [[name, len(lists), _most_frequent(lists.cut(k))] for name, lists in data.lists.items()]
    return blocks.TableBlock(columns, rows, [[name] for name in data.lists])


def _most_frequent(lists: tr.Recommendations) -> str:
    counts = np.bincount(lists.items, minlength=lists.n_items)
    most = np.argsort(-counts, kind="stable")[:_MOST_RECOMMENDED]
    return ", ".join(f"{lists.item_ids[at]} ({100 * counts[at] / len(lists):.1f} %)" for at in most if counts[at])
