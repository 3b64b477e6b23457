"""Write the tables of docs/results/estimators.md from the results of benchmarks/estimators.py: no arguments.

Each table stands between a comment that names it and a comment "end". Columns hold Recall@10 / NDCG@10 / AP.
"""

import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from estimators import METRICS, ORACLE, RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "results" / "estimators.md"
FORMS = {"bias": "{:.1f}", "rmse": "{:.1f}", "coverage": "{:.2f}", "order": "{:.2f}"}
# estimators whose results the page shows at one budget only
LITERATURE, SHOWN = ["em", "mes", "mn"], 100


@cache
def tables() -> dict[str, str]:
    """Return the tables of docs/results/estimators.md by name: how far goals are reached, and the results."""
    results = pd.read_csv(RESULTS)
    found = {str(data): _table(part) for data, part in results.groupby("data")}
    return {"goals": _goals(results), **found}


def _table(results: pd.DataFrame) -> str:
    """Return results as a table; columns hold Recall@10 / NDCG@10 / AP."""
    lines = ["| design | estimator | scores | bias, % | RMSE, % | coverage | order | runs |", "|---" * 8 + "|"]
    shown = results[~results["estimator"].isin(LITERATURE) | (results["budget"] == SHOWN)]
    for (_, design, estimator), part in shown.groupby(["budget", "design", "estimator"], sort=True):
        own = part.set_index("metric").reindex(METRICS)
        texts = [_joined(own[role], form) for role, form in FORMS.items()]
        cells = [str(design), str(estimator), f"{part['draws'].mean():.0f}", *texts, str(part["repetitions"].max())]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _joined(numbers: Iterable[float], form: str) -> str:
    return "/".join("-" if math.isnan(number) else form.format(number) for number in numbers)


def _goals(results: pd.DataFrame) -> str:
    """Return what the recommended estimator of inverse sampling reaches at each budget, and which goals it misses."""
    lines = [
        "| data | design | scores | estimator | of BV's error | coverage | order | runs | missed |",
        "|---" * 9 + "|",
    ]
    mine = results[results["recommended"] & results["design"].str.startswith("inverse")]
    theirs = results[results["estimator"] == ORACLE].set_index(["data", "budget", "metric"])["rmse"]
    keys: Any
    for keys, part in mine.groupby(["data", "budget", "design"], sort=True):
        data, budget, design = keys
        own = part.set_index("metric").reindex(METRICS)
        ratio = pd.Series({name: own["rmse"][name] / theirs.get((data, budget, name), np.nan) for name in METRICS})
        missed = {
            "error": (ratio > 0.5) & (budget <= 300),
            "coverage": ~own["coverage"].between(0.92, 0.98),
            "order": (own["order"] < 0.95) & (budget >= 250),
        }
        named = [f"{goal} ({', '.join(where.index[where])})" for goal, where in missed.items() if where.any()]
        names = "/".join(dict.fromkeys(own["estimator"]))
        texts = [_joined(ratio, "{:.2f}"), _joined(own["coverage"], "{:.2f}"), _joined(own["order"], "{:.2f}")]
        runs, told = str(own["repetitions"].max()), "; ".join(named) or "none"
        cells = [str(data), str(design), str(budget), names, *texts, runs, told]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write_tables() -> None:
    """Put the tables into the page, between comments that name them."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables().items():
        before, comment, rest = text.partition(f"<!-- {name} -->\n")
        text = f"{before}{comment}\n{table}\n\n<!-- end -->" + rest.partition("<!-- end -->")[2]
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_tables()
