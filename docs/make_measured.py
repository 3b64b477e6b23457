"""Write what was measured into the README and the pages, from benchmarks/results: ``python docs/make_measured.py``.

A number stands between ``<!--m NAME-->`` and ``<!--/m-->``; benchmarks/results/headlines.csv has its value, or says in
which row and column of another file it is. A table stands between a comment with its name and a comment ``end``.
tests/test_measured.py checks that all of them are up to date.
"""

import csv
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from truerank.core.tables import markdown
from truerank.formats.writing import write_text

DOCS = Path(__file__).resolve().parent
BENCHMARKS = DOCS.parent / "benchmarks"
PAGES = (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md")))
_NUMBER = re.compile(r"(<!--m ([\w-]+)-->)(.*?)(<!--/m-->)")
_TABLE = re.compile(r"(<!-- ([\w ,]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

Row = Mapping[str, str]


def filled(text: str) -> str:
    """Return a page with the present results in the place of earlier ones."""
    text = _NUMBER.sub(lambda found: f"{found[1]}{_number(found[2])}{found[4]}", text)
    return _TABLE.sub(lambda found: f"{found[1]}\n{_table(found[2])}\n\n{found[4]}", text)


def rows(name: str) -> list[Row]:
    """Return the rows of a file of results."""
    with (BENCHMARKS / "results" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _number(name: str) -> str:
    (own,) = (row for row in rows("headlines.csv") if row["name"] == name)
    if own["value"]:
        return own["value"]
    found = _one(rows(own["file"]), **dict(pair.split("=", 1) for pair in own["row"].split("&")))
    return "" if found is None else found[own["column"]]


def _table(name: str) -> str:
    if name in TABLES:
        return TABLES[name]()
    if str(BENCHMARKS) not in sys.path:
        sys.path.append(str(BENCHMARKS))
    from estimator_tables import tables  # type: ignore[import-not-found]

    return str(tables()[name])


def _percent(share: str | float) -> str:
    return f"{100 * float(share):.1f} %"


def _one(found: Sequence[Row], **wanted: str) -> Row | None:
    return next((row for row in found if all(row[name] == value for name, value in wanted.items())), None)


def spark() -> str:
    """Return what parts of a job cost: differences between runs that differ in one thing."""
    found = rows("spark.csv")
    cpu = {
        (row["part"], row["users"], row["partitions"], row["blocks"], row["engine"]): float(row["cpu"])
        for row in found[::-1]
    }
    local, spark = cpu["throughput", "60000", "2", "0", "local"], cpu["throughput", "60000", "2", "0", "spark"]
    task = (cpu["overheads", "2000", "64", "0", "spark"] - cpu["overheads", "2000", "2", "0", "spark"]) / 62
    block = (cpu["overheads", "4000", "1", "64", "spark"] - cpu["overheads", "4000", "1", "1", "spark"]) / 63
    user = (cpu["overheads", "200000", "2", "0", "spark"] - cpu["overheads", "50000", "2", "0", "spark"]) / 150_000
    lines = [
        (
            "60,000 users x 200,000 items x 64 factors, one executor",
            f"{spark:.1f} s (by the local engine {local:.1f} s)",
        ),
        ("any use of the ranks", f"{cpu['overheads', '2000', '2', '0', 'spark']:.0f} s"),
        ("a task", f"{task:.2f} s"),
        ("an item block, in a task with 4,000 held-out items", f"{block:.2f} s"),
        ("a user: reading, joining and passing to Python", f"{1e6 * user:.0f} µs"),
    ]
    return markdown(("what", "CPU time"), lines)


def honest_intervals() -> str:
    """Return a row per recommender, number of candidates and metric."""
    found = rows("honest_intervals.csv")
    header = (
        "ranks, m, metric, exact, assuming nothing, falling, smooth, covers all, covers 1000, `~bv(0.1)` ± 2 errors"
    )
    lines = []
    for key in dict.fromkeys((row["ranks"], row["m"], row["metric"]) for row in found):
        own = {row["assumed"]: row for row in found if (row["ranks"], row["m"], row["metric"]) == key}
        ends = [f"{float(row['low']):.4f} to {float(row['high']):.4f}" for row in own.values()]
        covers = [
            " / ".join(f"{100 * float(row[f'covers, {users} users']):.3g}" for row in own.values()) + " %"
            for users in ("all", "1,000")
        ]
        plain = f"{100 * float(own['nothing']['bv(0.1) and two errors cover']):.0f} %"
        exact = f"{float(own['nothing']['exact']):.4f}"
        lines.append((key[0], f"{int(key[1]):,}", key[2], exact, *ends, *covers, plain))
    return markdown(header.split(", "), lines)


def verdicts() -> str:
    """Return a row per design and number of users."""
    if str(BENCHMARKS) not in sys.path:
        sys.path.append(str(BENCHMARKS))
    import verdicts as benchmark  # type: ignore[import-not-found]

    wanted, done = set(benchmark.cells(benchmark.SETTINGS)), benchmark.read(benchmark.RESULTS)
    return "\n".join(benchmark.table({cell: found for cell, found in done.items() if cell in wanted}))


_DATA = {"MovieLens 1M": "MovieLens", "Gowalla": "Gowalla"}


def _by_data(file: str) -> dict[tuple[str, str], dict[str, Row]]:
    """Return rows by data and metric, then by whether they are of 100, 1,000 or all users."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows(file):
        if row["data"] in _DATA and "~" not in row["metric"]:
            size = row["users"] if row["users"] in ("100", "1000") else "all"
            found.setdefault((row["data"], row["metric"]), {})[size] = row
    return found


def interval_coverage() -> str:
    """Return how often intervals of a mean cover it."""
    cells = [("t", "100"), ("default", "100"), ("BCa", "100"), ("t", "1000"), ("default", "1000"), ("default", "all")]
    header = ["values", *(f"{name}, {size}" for name, size in cells), "width, 100", "width, 1000"]
    lines = []
    for (data, metric), own in _by_data("interval_coverage.csv").items():
        shares = [_percent(own[size][name]) for name, size in cells]
        widths = [f"{float(own[size]['width']):.2f}" for size in ("100", "1000")]
        lines.append([f"{_DATA[data]}, {metric}", *shares, *widths])
    return markdown(header, lines)


def false_positives() -> str:
    """Return how often tests reject a true null hypothesis."""
    cells = [
        (name, size) for name in ("likelihood", "t", "bootstrap", "randomisation") for size in ("100", "1000", "all")
    ]
    header = ["differences", *(f"{name}, {size}" for name, size in cells)]
    lines = [
        [f"{_DATA[data]}, {metric}", *(_percent(own[size][name]) for name, size in cells)]
        for (data, metric), own in _by_data("false_positives.csv").items()
    ]
    return markdown(header, lines)


def systems() -> str:
    """Return how often anything that a comparison of many systems says is false."""
    found = rows("many_systems.csv")
    columns = list(dict.fromkeys((row["recommenders"], row["users"], row["how"]) for row in found))
    header = ["law of the ranks", *(f"{n}, {int(users):,} users, {how}" for n, users, how in columns)]
    lines = []
    for law in dict.fromkeys(row["law"] for row in found):
        own = [_one(found, law=law, recommenders=n, users=users, how=how) for n, users, how in columns]
        lines.append(
            [law, *("" if row is None else _percent(int(row["wrong"]) / int(row["repetitions"])) for row in own)]
        )
    studies = [
        sorted({int(row["repetitions"]) for row in found if (row["recommenders"], row["users"], row["how"]) == column})
        for column in columns
    ]
    lines.append(
        ["studies of each law", *(" to ".join(f"{n:,}" for n in dict.fromkeys((own[0], own[-1]))) for own in studies)]
    )
    return markdown(header, lines)


def seeds() -> str:
    """Return how often intervals hold that allow for the runs, and those of the users alone."""
    found = rows("many_seeds.csv")
    laws = list(dict.fromkeys(row["law"] for row in found))
    header = ["runs", *laws, f"users alone, {laws[-1]}"]
    lines = []
    for how in dict.fromkeys(row["how"] for row in found):
        own = [row for law in laws if (row := _one(found, how=how, law=law))]
        shares = [_percent(1 - int(row["wrong"]) / int(row["repetitions"])) for row in own]
        lines.append([how, *shares, _percent(1 - float(own[-1]["missed by users alone"]))])
    return markdown(header, lines)


def races() -> str:
    """Return how often a race finds a difference where there is none."""
    found = rows("many_races.csv")
    lines = []
    for law in dict.fromkeys(row["law"] for row in found):
        own = [row for row in found if row["law"] == law]
        shares = [_percent(int(row["wrong"]) / int(row["repetitions"])) for row in own]
        repeated = [float(row["found by repeated t-tests"]) for row in own]
        lines.append([law, *shares, f"{100 * min(repeated):.0f} to {100 * max(repeated):.0f} %"])
    return markdown(("differences of users", "race, these users", "race, new users", "repeated t-tests"), lines)


def real_races() -> str:
    """Return how many users a race takes, and a fixed study."""
    lines = [
        (
            row["pair"],
            row["margin"],
            f"{float(row['difference']):.4f}",
            f"{float(row['users until decided']):,.0f}",
            f"{float(row['fixed study']):,.0f}",
        )
        for row in rows("real_races.csv")
    ]
    return markdown(("pair", "margin", "difference", "race", "fixed study"), lines)


def decided_errors() -> str:
    """Return the errors of designs that decide the top, and of others."""
    metrics = ("recall@10", "ndcg@10", "ap")
    lines = [
        (
            row["data"],
            f"`{row['design']}`",
            row["estimator"] if " " in row["estimator"] else f"~{row['estimator']}",
            f"{float(row['draws']):,.0f}",
            "/".join(row[metric] for metric in metrics),
            "/".join(row[f"bias of {metric}"] for metric in metrics),
        )
        for row in rows("decided_errors.csv")
    ]
    return markdown(("data", "design", "estimator", "scores", "RMSE, %", "bias, %"), lines)


def decided_coverage() -> str:
    """Return how often intervals of designs that decide the top cover, and how wide they are."""
    found = rows("decided_coverage.csv")
    columns = list(dict.fromkeys((row["metric"], row["design"]) for row in found))
    lines = []
    for law, users in dict.fromkeys((row["law"], row["users"]) for row in found):
        own = [_one(found, law=law, users=users, metric=metric, design=design) for metric, design in columns]
        shown = ["" if row is None else f"{row['coverage']} % (± {float(row['half width']):,.0f} %)" for row in own]
        lines.append([law, f"{int(users):,}", *shown])
    return markdown(("law of the ranks", "users", *(f"{metric}, `{design}`" for metric, design in columns)), lines)


def biased_logs() -> str:
    """Return what weights by propensity do where the truth is known."""
    lines = [
        (
            row["users"],
            row["propensity"],
            f"{float(row['bias']):+.2f} ± {float(row['its error']):.2f}",
            row["spread"],
            row["coverage"],
            f"{float(row['effective']):.0f}",
        )
        for row in rows("biased_logs.csv")
    ]
    return markdown(("users", "propensity", "bias", "spread", "coverage, %", "effective sample size"), lines)


_IN_FIRST = 5  # libraries in the first of two tables


def evaluators(first: int, last: int | None) -> str:
    """Return what the evaluators of some libraries do; bold is what depends on something that should not matter."""
    found = rows("evaluators.csv")
    names = list(dict.fromkeys((row["library"], row["version"]) for row in found))[first:last]
    lines = []
    for question in dict.fromkeys(row["question"] for row in found):
        own = [_one(found, library=name, question=question) for name, _ in names]
        if any(own):
            lines.append([question, *map(_marked, own)])
    table = markdown(("", *(f"{name} {version}" for name, version in names)), lines)
    return table.replace("---:", "---").replace(r"\*\*", "**")


def _marked(row: Row | None) -> str:
    if row is None:
        return ""
    return f"**{row['answer']}**" if row["kind"] == "fault" else row["answer"]


TABLES: dict[str, Callable[[], str]] = {
    "spark": spark,
    "evaluators, first": lambda: evaluators(0, _IN_FIRST),
    "evaluators, others": lambda: evaluators(_IN_FIRST, None),
    "decided errors": decided_errors,
    "decided coverage": decided_coverage,
    "honest intervals": honest_intervals,
    "verdicts": verdicts,
    "interval coverage": interval_coverage,
    "false positives": false_positives,
    "biased logs": biased_logs,
    "systems": systems,
    "seeds": seeds,
    "races": races,
    "real races": real_races,
}
"""Tables by the name in their comment; those of docs/results/estimators.md are in benchmarks/estimator_tables.py."""

if __name__ == "__main__":
    for page in PAGES:
        write_text(page, filled(page.read_text(encoding="utf-8")))
