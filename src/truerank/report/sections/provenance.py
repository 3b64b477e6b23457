"""How everything was computed, so that somebody else can do it again."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import version

import numpy as np

from truerank.arrays import AnyArray
from truerank.data.interactions import Interactions
from truerank.ranking.ranks import Ranks
from truerank.report.blocks import Column, Facts, Section, TableBlock
from truerank.report.material import Material

_TEXT = (
    "The same data has the same fingerprint, the first 16 digits of a SHA-256 over its numbers and ids. Intervals and "
    "tests of differences are by empirical likelihood, which allows for rare users that were not seen; p-values have "
    "Holm's adjustment. Expectations over samples are exact, not "
    "simulated."
)
_COLUMNS = [
    Column("recommender", "text"),
    Column("instances", "count"),
    Column("relevant items", "count"),
    Column("candidates", "text"),
    Column("ranked among", "text"),
    Column("fingerprint", "text"),
]


def section(material: Material) -> Section:
    """Return a table of the ranks, and facts on the split and the software."""
    rows = [[name, *_described(ranks)] for name, ranks in material.ranks.items()]
    notes = [f"{name}: {note}" for name, ranks in material.ranks.items() for note in ranks.notes]
    if material.split is not None:
        notes += [f"split: {note}" for note in material.split.notes]
    table = TableBlock(_COLUMNS, rows, [[name] for name in material.ranks])
    return Section("How it was computed", _TEXT, [table, Facts(_facts(material))], (*material.notes, *notes))


def _described(ranks: Ranks) -> list[object]:
    counts = ranks.n_candidates if ranks.n_catalogue is None else ranks.n_catalogue
    among = f"lists cut at depth {ranks.depth:,}" if ranks.depth is not None else "all candidates"
    design = among if ranks.design is None else f"candidates sampled by {ranks.design}"
    return [len(ranks), ranks.above.size, _spread(counts), design, fingerprint(ranks)]


def _facts(material: Material) -> dict[str, str]:
    facts = {"Metrics": ", ".join(map(str, material.metrics)), "Sampled candidates": f"m = {material.m:,}"}
    facts["Randomness"] = "; ".join(material.sample_note) or "none"
    if material.split is not None:
        train, test = material.split.train, material.split.test
        facts["Training data"] = f"{train}, {_of_interactions(train)}"
        facts["Held-out data"] = f"{test}, {_of_interactions(test)}"
    facts["Software"] = ", ".join(
        [*(f"{name} {version(name)}" for name in ("truerank", "numpy", "scipy")), f"Python {platform.python_version()}"]
    )
    return facts


def fingerprint(ranks: Ranks) -> str:
    """Return the same text for equal ranks, and another one for any others.

    Examples
    --------
    >>> a, b = Ranks.from_ranks([1, 2], n=5), Ranks.from_ranks([1, 3], n=5)
    >>> fingerprint(a) == fingerprint(Ranks.from_ranks([1, 2], n=5)), fingerprint(a) == fingerprint(b)
    (True, False)
    """
    arrays = (ranks.above, ranks.tied, ranks.n_candidates, ranks.indptr, ranks.n_catalogue, ranks.drawn, ranks.grades)
    return _digest(f"{ranks.design} {ranks.depth}", *arrays, ranks.ids)


def _of_interactions(data: Interactions) -> str:
    return f"fingerprint {_digest('', data.indptr, data.items, data.names, data.item_names)}"


def _digest(text: str, *arrays: AnyArray | None) -> str:
    """Hash arrays by their numbers or texts, whatever the type that holds them."""
    found = hashlib.sha256(text.encode())
    for array in arrays:
        found.update(b"none" if array is None else f"{array.shape}".encode())
        if array is not None and array.dtype.kind in "biuf":
            found.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        elif array is not None:
            found.update("\0".join(map(str, array.tolist())).encode())
    return found.hexdigest()[:16]


def _spread(counts: AnyArray) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
