"""From text to metric: ``"nDCG@10"``, ``"map"`` and ``"P_10"`` all find what they mean."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, cast, overload

from truerank.errors import InputError
from truerank.metrics.graded import GRADED
from truerank.metrics.plain import BUILT_IN, FunctionMetric, Metric, Term

M = TypeVar("M", bound=type[Metric])

_BUILT_IN = (*BUILT_IN, *GRADED)
_registry: dict[str, type[Metric] | FunctionMetric] = {kind.name: kind for kind in _BUILT_IN}

_ALIASES = {
    "roc-auc": "auc", "auroc": "auc", "gauc": "auc",
    "p": "precision", "prec": "precision",
    "r": "recall",
    "map": "ap", "average-precision": "ap", "mean-average-precision": "ap",
    "mean-ndcg": "ndcg",
    "mrr": "rr", "recip-rank": "rr", "reciprocal-rank": "rr", "mean-reciprocal-rank": "rr",
    "hit": "hr", "hits": "hr", "hit-rate": "hr", "hit-ratio": "hr", "hitrate": "hr", "hitratio": "hr", "success": "hr",
    "acc": "accuracy",
    "f": "f1", "f-score": "f1", "f1-score": "f1",
    "rprec": "r-precision", "r-prec": "r-precision", "rprecision": "r-precision",
    "mr": "mean-rank", "meanrank": "mean-rank", "average-rank": "mean-rank",
    "avgrp": "marp", "mean-average-r-precision": "marp",
    "graded-ndcg": "gndcg", "wrecall": "weighted-recall",
}  # fmt: skip

_FORM = re.compile(r"(?P<name>[a-z][a-z0-9-]*?)(-cut)?(\((?P<args>[^()]*)\))?([@-](?P<k>\d[^()]*))?")


def metric(text: str | Metric | Term) -> Metric:
    """Return the metric that a text names; metrics pass through, functions are wrapped.

    Upper and lower case, ``_`` and ``-`` are the same, and the field's other names are known:
    ``map``, ``mrr``, ``hit_rate@10``, ``hits@10``, ``success@5``, ``p@10``, ``r@10``, and
    trec_eval's ``P_10``, ``ndcg_cut_10``, ``recip_rank``.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.metric("nDCG@10")
    NDCG(k=10)
    >>> str(tr.metric("P_10")), str(tr.metric("map")), str(tr.metric("RBP(0.80)"))
    ('precision@10', 'ap', 'rbp(0.8)')
    >>> tr.metric("MARp@5,10")
    MARp(k=(5, 10))
    >>> tr.metric("ndgc@10")
    Traceback (most recent call last):
    ...
    truerank.errors.InputError: unknown metric 'ndgc@10'; did you mean 'ndcg@10'?
    """
    if isinstance(text, Metric):
        return text
    if callable(text):
        return FunctionMetric(text)
    plain = text.strip().lower().replace("_", "-").replace(" ", "")
    if "~" in plain:
        from truerank.corrections.corrected import Corrected, correction

        base, _, how = plain.partition("~")
        return Corrected(metric(base), correction(how))
    form = _FORM.fullmatch(plain)
    if form is None:
        raise InputError(f"can't read the metric {text!r}; write it like 'ap', 'ndcg@10' or 'rbp(0.8)'.")
    kind = _registry.get(_ALIASES.get(form["name"], form["name"]))
    if kind is None:
        raise InputError(f"unknown metric {text!r}; {_suggestion(form)}")
    if isinstance(kind, FunctionMetric):
        if form["args"] or form["k"]:
            raise InputError(f"metric {kind.name!r} takes no parameters, got {text!r}.")
        return kind
    return _build(kind, form, text)


def metrics(texts: str | Metric | Term | Iterable[str | Metric | Term]) -> tuple[Metric, ...]:
    """Return the metrics that one text, or each of several, names."""
    if isinstance(texts, str | Metric) or callable(texts):
        texts = [texts]
    return tuple(metric(text) for text in texts)


@overload
def register_metric(new: M) -> M: ...
@overload
def register_metric(new: Term) -> FunctionMetric: ...
def register_metric(new: M | Term) -> M | FunctionMetric:
    """Make a metric known by its name; use it as a decorator on a `Metric` class or on a function.

    The function is f(rank, i, n_relevant, n): what the i-th relevant item from the top adds at that
    rank. It gets and returns NumPy arrays, and its name becomes the metric's.

    Examples
    --------
    >>> import truerank as tr
    >>> @tr.register_metric
    ... def inverse_square(rank, i, n_relevant, n):
    ...     return 1 / rank**2 / n_relevant
    >>> tr.values(tr.Ranks.from_ranks([1, 2], n=9), "inverse-square").tolist()
    [1.0, 0.25]
    """
    known = cast("M | FunctionMetric", new if isinstance(new, type) else FunctionMetric(new))
    name = known.name
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise InputError(f"a metric's name must be lower-case letters, digits and '-', got {name!r}.")
    if name in _ALIASES or any(kind.name == name for kind in _BUILT_IN):
        raise InputError(f"the metric name {name!r} is taken.")
    _registry[name] = known
    return known


def known_metrics() -> dict[str, type[Metric] | FunctionMetric]:
    """Return every known metric by its name."""
    return dict(_registry)


def _suggestion(form: re.Match[str]) -> str:
    names = [name for name in (*_registry, *_ALIASES) if form["args"] is None or _has_parameters(name)]
    close = difflib.get_close_matches(form["name"], names, n=1, cutoff=0.6)
    if not close:
        return "known are " + ", ".join(sorted(_registry)) + "."
    args = f"({form['args']})" if form["args"] else ""
    return f"did you mean '{close[0]}{args}{'@' + form['k'] if form['k'] else ''}'?"


def _has_parameters(name: str) -> bool:
    kind = _registry[_ALIASES.get(name, name)]
    return isinstance(kind, type) and any(field.name != "k" for field in fields(kind))


def _build(kind: type[Metric], form: re.Match[str], text: str) -> Metric:
    parameters = {field.name: field for field in fields(kind)}
    takes_k = parameters.pop("k", None)
    given = [part for part in (form["args"] or "").split(",") if part]
    needed = sum(field.default is MISSING for field in parameters.values())
    if not needed <= len(given) <= len(parameters) or (form["k"] and takes_k is None):
        raise InputError(f"{kind.name} is written {_pattern(kind)!r}, got {text!r}.")
    values: dict[str, Any] = {}
    try:
        for field, part in zip(parameters.values(), given, strict=False):
            values[field.name] = part if isinstance(field.default, str) else float(part)
        if form["k"]:
            values["k"] = kind.read_k(form["k"])
    except ValueError:
        raise InputError(f"{kind.name} is written {_pattern(kind)!r}, got {text!r}.") from None
    if takes_k is not None and takes_k.default is MISSING and "k" not in values:
        raise InputError(f"{kind.name} needs a cut-off, as in '{kind.name}@10', got {text!r}.")
    return kind(**values)


def _pattern(kind: type[Metric]) -> str:
    names = [field.name for field in fields(kind)]
    inner = ", ".join(name for name in names if name != "k")
    return kind.name + (f"({inner})" if inner else "") + (f"@{kind.written_k}" if "k" in names else "")
