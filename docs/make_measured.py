"""Write what was measured into the README and the pages, from benchmarks/results: ``python docs/make_measured.py``.

`SENTENCES` lists sentences with measured numbers: each is found in its page by its words, however its lines are broken,
and the numbers in braces are replaced by those that `FIGURES` reads from a file of results. A table stands between a
comment with its name and a comment ``end``. tests/test_measured.py checks that all of them are up to date.
"""

import csv
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import mean

from truerank.core.tables import markdown
from truerank.formats.writing import write_text

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BENCHMARKS = ROOT / "benchmarks"
PAGES = (ROOT / "README.md", BENCHMARKS / "README.md", *sorted(DOCS.rglob("*.md")))
_NUMBER = r"[0-9]+(?:[.,][0-9]+)*"
_WORDS = {"processor": r"[^()]+?", "date": r"\d+\s+\w+\s+\d{4}"}  # what stands for figures that are no numbers
_SLOT = re.compile(r"\{([^}]+)\}")
_TABLE = re.compile(r"(<!-- ([\w ,]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

Row = Mapping[str, str]

SENTENCES: dict[str, Sequence[str]] = {
    "README.md": (
        "On {date, contest}, on one core of a virtual machine ({processor, contest}, [benchmarks]): exact ranks "
        "of 6,040 users among 3,706 items took {rank, ms} ms of CPU time, and the matrix product alone {product, ms} "
        "ms.",
        "implicit, RecBole, Cornac, LensKit or recometrics took {small, least} to {small, most} times as long as "
        "`tr.rank`, and with 30,000 users and 40,000 items {big, least} to {big, most} times as long.",
        "`depth=10` took {iALS @10} of the product for iALS factors of Gowalla and {BPR @10} for BPR factors, and full "
        "ranks {iALS all} and {BPR all}.",
        "Of the {table 3} numbers of the paper's Table 3, {table 3, agree} agree",
    ),
    "docs/how-to/pytorch-model.md": (
        "6,040 users, 3,706 items and 16 factors take [{rank, ms} ms on one core](../benchmarks.md)",
    ),
    "docs/reproduction.md": (
        "{table 3, agree} of the {table 3} cells of Table 3 agree.",
        "the exact one is {AUC of Y} where {AUC of Y, printed} is printed",
        "All eight printed AUC values of Y are lower than ours, by {AUC of Y, lower} on average.",
        "the rank estimate of Y's Recall is {rank estimate} (published {rank estimate, printed}),",
        "never negative. Y's Recall is {CLS} (published {CLS, printed})",
        "The published AUC ({rank estimate AUC, printed} for Y) fits a division by m + 1 ({rank estimate AUC}), "
        "not by m ({rank estimate AUC over m})",
        "raises Z's sampled AUC: {sampled AUC of Z} instead of {AUC of Z} (published {sampled AUC of Z, printed})",
        "and the others are off by {outside, least} to {outside, most}, where three standard errors and rounding allow "
        "{outside, allowed}.",
        "stay in their exact order: {figure 6} and {figure 6, corrected} with the first seed of X and one order of Z's "
        "ties, {figure 6, least} to {figure 6, most} and {figure 6, corrected, least} to {figure 6, corrected, most} "
        "over ten seeds",
    ),
    "docs/spark.md": ("a user {spark, user} µs ([measured](results/spark.md))",),
    "docs/results/spark.md": ("would take about {spark, core-hours} core-hours",),
    "docs/results/intervals.md": (
        "Of the {verdicts} cells none fails",
        "The nominal 95 % interval never covers less than {honest, least} %.",
        "The default covers {covered} % or more everywhere",
        "Student's interval covers {covered by t} %.",
        "The default rejects at most {rejected} %,",
    ),
    "docs/results/estimators.md": ("is correct in at least {order, least} % of the runs.",),
    "docs/explanations/uncertainty.md": (
        "nominal 95 % intervals cover in {honest, least} % of the repetitions or more.",
    ),
    "docs/how-to/slow-scorer.md": (
        "Recall@10 is {X, exact}):",
        "of Recall@10 are {X, nothing, low} to {X, nothing, high} if nothing is assumed, and {X, falling, low} to "
        "{X, falling, high} if deeper ranks",
        "100 sampled candidates take {sampled 100} of the time of exact ranks, 300 take {sampled 300}, and 1,000 take "
        "{sampled 1000} ([measured]",
    ),
    "docs/many.md": (
        "is false in at most {systems, wrong} % of the studies of each law",
        "intervals hold in at least [{seeds, hold} %](results/many.md#seeds)",
        "(intervals for users alone hold in {users alone, least} to {users alone, most} %)",
        "races find a difference where there is none in {races, least} to {races, most} % of the cases, t-tests that "
        "are repeated in {t-tests, least} to {t-tests, most} %.",
    ),
    "docs/comparing.md": (
        "on MovieLens intervals of differences are {wider 1000, least} to {wider 1000, most} % wider than Student's "
        "with 1,000 users, and {wider 100, least} to {wider 100, most} % with 100.",
        "Nominal 95 % intervals cover in [{covered} % or more](results/intervals.md#intervals-of-a-mean) of the "
        "samples, and the default test rejects at most [{rejected} %](results/intervals.md#tests) of true null",
        "is correct from {figure 6} candidates on, and from {figure 6, corrected} on if corrected",
    ),
    "benchmarks/README.md": (
        "Contenders ran on {date, contest} ({processor, contest}).",
        "Measured on {date, growth} ({processor, growth}).",
        "takes {switch, ms} ms until another metric is shown, the median of {switches} switches, and {switch, CPU} ms "
        "of processor time for each, at a load of {switch, load} on two cores.",
    ),
}
"""Sentences with numbers, by page."""


def filled(page: Path, shown: Callable[[str], str] = str) -> str:
    """Return a page with the present results, or what is shown for each of them, in the place of earlier ones."""
    text = page.read_text(encoding="utf-8")
    for sentence in SENTENCES.get(page.relative_to(ROOT).as_posix(), ()):
        text = _corrected(text, sentence, shown)
    return _TABLE.sub(lambda found: f"{found[1]}\n{shown(_table(found[2]))}\n\n{found[4]}", text)


def _corrected(text: str, sentence: str, shown: Callable[[str], str]) -> str:
    """Return a text in which a sentence, which must be there once, has the numbers of the results."""
    words = [r"\s+".join(map(re.escape, part.split(" "))) for part in _SLOT.split(sentence)[::2]]
    slots = [f"({_WORDS.get(name.split(', ')[0], _NUMBER)})" for name in _SLOT.findall(sentence)]
    found = list(re.finditer("".join(part for pair in zip(words, [*slots, ""], strict=True) for part in pair), text))
    if len(found) != 1:
        raise ValueError(f"a page must have the sentence {sentence!r} once, but has it {len(found)} times.")
    for at, name in reversed(list(enumerate(_SLOT.findall(sentence), 1))):
        text = text[: found[0].start(at)] + shown(FIGURES[name]()) + text[found[0].end(at) :]
    return text


@cache
def rows(name: str) -> list[Row]:
    """Return the rows of a file of results."""
    with (BENCHMARKS / "results" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def _table(name: str) -> str:
    if name in TABLES:
        return TABLES[name]()
    if str(BENCHMARKS) not in sys.path:
        sys.path.append(str(BENCHMARKS))
    from estimator_tables import tables  # type: ignore[import-not-found]

    return str(tables()[name])


def _with_words(table: str, column: int) -> str:
    """Return a table in which a column is of words: on the left."""
    header, rule, *lines = table.split("\n")
    kinds = rule.split("|")
    kinds[column + 1] = " --- "
    return "\n".join([header, "|".join(kinds), *lines])


def _percent(share: str | float) -> str:
    return f"{100 * float(share):.1f} %"


def _one(found: Sequence[Row], **wanted: str) -> Row | None:
    return next((row for row in found if all(row[name] == value for name, value in wanted.items())), None)


def _spark_parts() -> dict[str, float]:
    """Return what parts of a job cost in seconds: differences between runs that differ in one thing."""
    cpu = {
        (row["part"], row["users"], row["partitions"], row["blocks"], row["engine"]): float(row["cpu"])
        for row in rows("spark.csv")[::-1]
    }
    use, tasks = (cpu["overheads", "2000", count, "0", "spark"] for count in ("2", "64"))
    one, blocks = (cpu["overheads", "4000", "1", count, "spark"] for count in ("1", "64"))
    few, many = (cpu["overheads", users, "2", "0", "spark"] for users in ("50000", "200000"))
    whole = {engine: cpu["throughput", "60000", "2", "0", engine] for engine in ("local", "spark")}
    each = {"task": (tasks - use) / 62, "block": (blocks - one) / 63, "user": (many - few) / 150_000}
    return whole | {"use": use} | each


def spark() -> str:
    """Return what parts of a job cost."""
    found = _spark_parts()
    lines = [
        (
            "60,000 users x 200,000 items x 64 factors, one executor",
            f"{found['spark']:.1f} s (by the local engine {found['local']:.1f} s)",
        ),
        ("any use of the ranks", f"{found['use']:.0f} s"),
        ("a task", f"{found['task']:.2f} s"),
        ("an item block, in a task with 4,000 held-out items", f"{found['block']:.2f} s"),
        ("a user: reading, joining and passing to Python", f"{1e6 * found['user']:.0f} µs"),
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


_SMALL, _BIG = "6040 x 3706", "30000 x 40000"
_LIBRARIES = ("implicit", "RecBole", "Cornac", "LensKit", "recometrics")


def _contest(shape: str) -> dict[str, Row]:
    """Return what evaluating factors of a shape took, by contender; the product is that of its best blocks."""
    own = [row for row in rows("exact_ranks.csv") if row["shape"] == shape and row["threads"] == "1"]
    found = {row["contender"]: row for row in own}
    products = [row for name, row in found.items() if name.startswith("product ")]
    return {"product": min(products, key=_cpu), **found}


def _cpu(row: Row) -> float:
    return float(row["CPU seconds"])


def _times(shape: str, contender: str) -> float:
    found = _contest(shape)
    return _cpu(found[contender]) / _cpu(found["truerank.rank"])


def _ratio(value: float) -> str:
    """Return a ratio with two digits, or as a whole number."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def _of_libraries(shape: str, choose: Callable[[list[float]], float]) -> str:
    return _ratio(choose([_times(shape, name) for name in _LIBRARIES]))


def exact_contest() -> str:
    """Return how long contenders took relative to `tr.rank`, and whether they agree with it."""
    names = {"truerank.rank": "tr.rank", "truerank.rank, evaluate": "tr.rank and tr.evaluate"}
    names |= {"product": "the matrix product alone"}
    others = [name for name in _contest(_SMALL) if name not in names and not name.startswith("product ")]
    lines = []
    for name in [*names, *sorted(others, key=partial(_times, _SMALL))]:
        small, big = _times(_SMALL, name), _times(_BIG, name)
        lines.append((names.get(name, name), _ratio(small), _ratio(big), _agreement(_contest(_SMALL)[name]["means"])))
    return _with_words(markdown(("", "small", "big", "Recall@10 and NDCG@10 (small)"), lines), 3)


def growth() -> str:
    """Return how CPU time grows with each size, and the fitted exponents."""
    names = [name for name in rows("growth.csv")[0] if name.startswith("x ")]
    lines = [
        (row["size"], *(row[name] for name in names), f"{row['exponent']} ± {row['error']}")
        for row in rows("growth.csv")
    ]
    return markdown(("", *names, "exponent"), lines)


def _date(name: str) -> str:
    """Return when the first row of a file was measured."""
    return f"{date.fromisoformat(rows(name)[0]['date']):%-d %B %Y}"


def _processor(name: str) -> str:
    """Return on what the first row of a file was measured, and with which variant of the loops."""
    return rows(name)[0]["processor"].replace("(R)", "")


def _agreement(means: str) -> str:
    return means if "differs" in means else "agree" if means else ""


def comparison_speed() -> str:
    """Return what comparing all pairs costs."""
    lines = [
        (row["comparison"], f"{float(row['seconds']):.1f}", f"{float(row['CPU seconds']):.1f}", row["peak MB"])
        for row in rows("comparison_speed.csv")
    ]
    return markdown(("", "seconds", "CPU seconds", "peak MB"), lines)


def large_files() -> str:
    """Return what reading and writing files of many rows takes."""
    names = ("call", "format", "rows", "limit, GB", "peak, GB", "CPU, s", "found")
    return markdown(
        names,
        [[f"{int(row[name]):,}" if name == "rows" else row[name] for name in names] for row in rows("large_files.csv")],
    )


_SHOWN = 8  # times that the page on history shows


def history() -> str:
    """Return the last ratios of the main paths on the processor that measured last."""
    found = rows("history.csv")
    own = [row for row in found if row["processor"] == found[-1]["processor"]]
    times = list(dict.fromkeys((row["date"], row["commit"]) for row in own))[-_SHOWN:]
    lines = []
    for path in dict.fromkeys(row["path"] for row in own):
        then = [_one(own, date=date, commit=commit, path=path) for date, commit in times]
        lines.append([path, *("" if row is None else row["ratio"] for row in then)])
    return markdown(("path / limit", *(f"{date}, {commit}" for date, commit in times)), lines)


def reached() -> str:
    """Return which share of the lines and branches of each folder the tests reach."""
    lines = []
    for row in rows("coverage.csv"):
        pairs = [(int(row[f"{kind} reached"]), int(row[kind])) for kind in ("lines", "branches")]
        lines.append((row["part"], *(f"{there:,} of {every:,}" for there, every in pairs), _together(pairs)))
    return markdown(("", "lines", "branches", "share of both"), lines)


def _together(pairs: Sequence[tuple[int, int]]) -> str:
    reached, every = (sum(column) for column in zip(*pairs, strict=True))
    return _percent(reached / every)


def mutations() -> str:
    """Return how many small changes to each module were tried, and how many a test notices."""
    found = rows("mutations.csv")
    modules = list(dict.fromkeys(row["module"] for row in found))
    parts = [(module, [bool(row["noticed by"]) for row in found if row["module"] == module]) for module in modules]
    parts.append(("all", [bool(row["noticed by"]) for row in found]))
    lines = [(name, str(len(own)), str(sum(own)), _percent(sum(own) / len(own))) for name, own in parts]
    return markdown(("module", "changes", "noticed", "share"), lines)


def samples() -> str:
    """Return how many changes of each sample were noticed at first, how many are now, and why the others are not."""
    found = rows("mutations.csv")
    lines = []
    for seed in sorted({row["seed"] for row in found}):
        own = [row for row in found if row["seed"] == seed]
        first = [row["at first"] == "noticed" for row in own if row["at first"]]
        now = [bool(row["noticed by"]) for row in own]
        shares = [_percent(sum(each) / len(each)) if each else "not recorded" for each in (first, now)]
        still_open = sum(row["why not"] == "open" for row in own)
        counts = (len({row["module"] for row in own}), len(own))
        lines.append((seed, *map(str, counts), *shares, str(len(own) - sum(now) - still_open), str(still_open)))
    names = ("noticed at first", "noticed now", "explained", "open")
    return markdown(("seed", "modules", "changes", *names), lines)


def survivors() -> str:
    """Return the changes that no test noticed, and why."""
    lines = [
        (f"{row['module']}:{row['line']}", _code(row["before"]), _code(row["after"]), row["why not"])
        for row in rows("mutations.csv")
        if not row["noticed by"]
    ]
    return markdown(("where", "line", "changed part", "why"), lines).replace("---:", "---")


def _code(text: str) -> str:
    return "`" + text.replace("|", r"\|") + "`"


_WAYS = {
    "RankMetric": "`RankMetric` on blocks of scores, three metrics",
    "rank(depth=20)": "`tr.rank(tr.Factors(...), depth=20)` and `tr.evaluate`",
    "torch.topk": "`torch.topk` of the same blocks, one metric",
}


def training_loop() -> str:
    """Return what validation adds to an epoch."""
    lines = [
        (_WAYS[row["part"]], f"{100 * float(row['share of an epoch']):.1f} %")
        for row in rows("training_loop.csv")
        if row["part"] in _WAYS
    ]
    return markdown(("after each epoch", "adds"), lines)


def metrics_from_lists() -> str:
    """Return what evaluating ranked lists costs, the quickest first."""
    found = sorted(rows("metrics_from_lists.csv"), key=_cpu)
    lines = [
        (row["contender"], row["CPU seconds"], _ratio(float(row["times truerank"])), row["first call"]) for row in found
    ]
    return markdown(("", "seconds", "times truerank", "first call, seconds"), lines)


def recommending() -> str:
    """Return how long contenders take relative to `tr.recommend`."""
    found = rows("recommending.csv")
    names = list(dict.fromkeys(row["contender"] for row in found))[1:]
    lines = []
    for users, items, k in dict.fromkeys((row["users"], row["items"], row["k"]) for row in found):
        own = {row["contender"]: row for row in found if (row["users"], row["items"], row["k"]) == (users, items, k)}
        ratios = [_ratio(float(own[name]["times truerank"])) for name in names]
        lines.append((f"{int(users):,}", f"{int(items):,}", k, *ratios))
    return markdown(("users", "items", "k", *(name.replace("truerank, rank", "`tr.rank`") for name in names)), lines)


def training() -> str:
    """Return how long others train relative to truerank."""
    lines = [
        (" ".join(filter(None, (f"`tr.{row['model']}`", row["factors"]))), row["contender"], row["times truerank"])
        for row in rows("recommenders.csv")
    ]
    return _with_words(markdown(("model and factors", "other", "its time"), lines), 1)


def limits() -> str:
    """Return how close ranking comes to limits."""
    lines = [(row["what"], row["relative to"], row["case"], row["ratio"]) for row in rows("limits.csv")]
    return _with_words(_with_words(markdown(("ranking by", "relative to", "case", "ratio"), lines), 1), 2)


def _limit(what: str, case: str) -> str:
    found = _one(rows("limits.csv"), what=what, case=case)
    assert found, (what, case)
    return found["ratio"]


def reports() -> str:
    """Return what reports cost."""
    lines = [
        (f"{int(row['users']):,}", row["held-out items"], row["CPU seconds"], row["peak GB"])
        for row in rows("reports.csv")
    ]
    return markdown(("users", "held-out items per user", "seconds", "peak GB"), lines)


def designs() -> str:
    """Return what designs that draw until enough is known determine."""
    lines = [
        (
            f"`{row['design']}`",
            row["scores"],
            *(f"{row[f'{a}, low']} to {row[f'{a}, high']}" for a in ("nothing", "falling")),
        )
        for row in rows("designs.csv")
    ]
    return markdown(("design", "scores per user", "nothing assumed", "falling"), lines)


def below_product() -> str:
    """Return how long ranks and lists of trained models take relative to the product."""
    columns = {"@10": "`depth=10`", "@20": "20", "@100": "100", "one item": "full, one", "all items": "full, all"}
    columns |= {"best 10": "10 best", "best 100": "100 best"}
    found = sorted(rows("below_product.csv"), key=lambda row: (row["processor"], row["data"]))
    tables = []
    for processor, own in groupby(found, key=lambda row: row["processor"]):
        lines = [(f"{row['data']}, {row['model']}", *(row[column] for column in columns)) for row in own]
        tables.append(f"{processor}:\n\n{markdown(('model', *columns.values()), lines)}")
    return "\n\n".join(tables)


def _below(model: str, column: str) -> str:
    processor = rows("exact_ranks.csv")[0]["processor"]
    found = _one(rows("below_product.csv"), data="Gowalla", model=model, processor=processor)
    assert found, model
    return found[column]


def _cells(**wanted: object) -> list[dict[str, float | str]]:
    """Return cells of the paper's tables, as `truerank reproduce` writes them."""
    cells = json.loads((BENCHMARKS / "results" / "reproduction.json").read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if all(cell[name] == value for name, value in wanted.items())]


def _cell(row: str, column: str, field: str = "ours") -> str:
    (cell,) = _cells(table=3, row=row, column=column)
    return str(cell["printed"]) if field == "printed" else f"{float(cell[field]):.2f}"


def _shares(values: Sequence[float], choose: Callable[[Sequence[float]], float], digits: int = 0) -> str:
    return f"{100 * choose(values):.{digits}f}".removesuffix(".0")


def _wrong(found: Sequence[Row]) -> list[float]:
    return [int(row["wrong"]) / int(row["repetitions"]) for row in found]


def _from_three_runs() -> list[Row]:
    return [row for row in rows("many_seeds.csv") if row["how"] != "2 and 2 runs"]


def _users_alone() -> list[float]:
    """Return how often intervals hold that allow for the users alone, where runs do not differ."""
    same = [row for row in _from_three_runs() if row["law"] == "spread of runs 0"]
    return [1 - float(row["missed by users alone"]) for row in same]


def _wider(users: str) -> list[float]:
    found = [row for row in rows("interval_coverage.csv") if "difference" in row["metric"] and row["users"] == users]
    return [float(row["width"]) - 1 for row in found if row["data"] == "MovieLens 1M"]


def _honest(assumed: str, column: str) -> str:
    """Return a number of Recall@10 of X among 100 sampled candidates."""
    found = _one(rows("honest_intervals.csv"), ranks="MovieLens X", m="100", metric="recall@10", assumed=assumed)
    assert found, assumed
    return f"{float(found[column]):.4f}"


def _outside() -> list[dict[str, float | str]]:
    """Return the cells of Table 3 that disagree and whose published number has an error."""
    return [cell for cell in _cells(table=3, verdict="outside") if cell["standard_error"]]


def _off(choose: Callable[[list[float]], float]) -> str:
    return f"{choose([abs(float(cell['difference'])) for cell in _outside()]):.3f}"


def _core_hours() -> float:
    """Return what 10^8 users, 10^7 items and 64 factors take, from what four times as many items add."""
    one, more = (_one(rows("spark.csv"), part="growth", users="20000", items=items) for items in ("200000", "800000"))
    assert one
    assert more
    return (float(more["cpu"]) - float(one["cpu"])) / (20_000 * 600_000) * 1e15 / 3_600


def _least_order() -> float:
    """Return how often the order is correct from 250 scores on, by the recommended estimators of inverse sampling."""
    found = [row for row in rows("estimators.csv") if row["recommended"] == "True" and int(row["budget"]) >= 250]
    return min(float(row["order"]) for row in found if row["design"].startswith("inverse"))


def _figure_6(column: str, choose: Callable[[list[int]], int]) -> str:
    return f"{choose([int(row[column]) for row in rows('figure_6.csv')]):,}"


def _column(file: str, *columns: str) -> list[float]:
    return [float(row[column]) for row in rows(file) for column in columns]


def _switch(field: str) -> str:
    return rows("report_switching.csv")[0][field]


_READINGS = {
    "X": (
        ("loss as printed, start N(0, 0.1²), 4 sweeps; ten seeds", "X, 4 sweeps"),
        ("the same, 5 sweeps; ten seeds", "X, 5 sweeps"),
        ("the same, 16 sweeps; ten seeds", "X, 16 sweeps"),
    ),
    "Y": (
        (
            "cosine³, self kept, rows over their norm (eq. 29), no denominator",
            "Y, self kept, row norm, no denominator",
        ),
        ("the same, but divided as eq. 30 says", "Y, self kept, denominator of eq. 30"),
        ("self dropped", "Y, self dropped, row norm, no denominator"),
        ("without eq. 29", "Y, self kept, no row norm, no denominator"),
    ),
    "Z": (
        (
            "cosine, self dropped, ten i for each j, eq. 29, no denominator",
            "Z, ten per column, self dropped, row norm, no denominator",
        ),
        ("the same, but divided as eq. 30 says", "Z, ten per column, self dropped, denominator of eq. 30"),
        ("ten j for each i, as eq. 28 says with k' = 10", "Z, ten per row, self dropped, row norm, no denominator"),
        ("self kept", "Z, ten per column, self kept, row norm, no denominator"),
        ("without eq. 29", "Z, ten per column, self dropped, no row norm, no denominator"),
    ),
}
"""What docs/reproduction.md calls the readings in readings.csv, by recommender."""


def readings() -> str:
    """Return published metrics and those of several readings of the paper; of X over its seeds."""
    metrics = ("recall@10", "ndcg@10", "ap", "auc")
    lines = []
    for recommender, own in _READINGS.items():
        published = [_cell(f"{metric} {recommender}", "exact", "printed") for metric in metrics]
        lines.append((f"**{recommender}**", "**published**", *published))
        for words, name in own:
            found = [row for row in rows("readings.csv") if f"{row['reading']},".startswith(f"{name},")]
            ends = [[choose(float(row[metric]) for row in found) for choose in (min, max)] for metric in metrics]
            lines.append(("", words, *("–".join(f"{end:.2f}" for end in dict.fromkeys(both)) for both in ends)))
    return _with_words(markdown(("recommender", "reading", "Recall@10", "NDCG@10", "AP", "AUC"), lines), 1)


FIGURES: dict[str, Callable[[], str]] = {
    "date, contest": partial(_date, "exact_ranks.csv"),
    "processor, contest": partial(_processor, "exact_ranks.csv"),
    "date, growth": partial(_date, "growth.csv"),
    "processor, growth": partial(_processor, "growth.csv"),
    "rank, ms": lambda: f"{1e3 * _cpu(_contest(_SMALL)['truerank.rank']):.1f}",
    "product, ms": lambda: f"{1e3 * _cpu(_contest(_SMALL)['product']):.1f}",
    "small, least": partial(_of_libraries, _SMALL, min),
    "small, most": partial(_of_libraries, _SMALL, max),
    "big, least": partial(_of_libraries, _BIG, min),
    "big, most": partial(_of_libraries, _BIG, max),
    "iALS @10": partial(_below, "iALS 64", "@10"),
    "iALS all": partial(_below, "iALS 64", "all items"),
    "BPR @10": partial(_below, "implicit BPR 64", "@10"),
    "BPR all": partial(_below, "implicit BPR 64", "all items"),
    "table 3": lambda: str(len(_cells(table=3))),
    "table 3, agree": lambda: str(len(_cells(table=3)) - len(_cells(table=3, verdict="outside"))),
    "AUC of Y": lambda: f"{float(_cells(table=3, row='auc Y', column='exact')[0]['ours']):.3f}",
    "AUC of Y, printed": partial(_cell, "auc Y", "exact", "printed"),
    "AUC of Y, lower": lambda: f"{mean(float(cell['difference']) for cell in _cells(table=3, row='auc Y')):.3f}",
    "rank estimate": partial(_cell, "recall@10 Y", "~rank"),
    "rank estimate, printed": partial(_cell, "recall@10 Y", "~rank", "printed"),
    "rank estimate AUC": partial(_cell, "auc Y", "~rank"),
    "rank estimate AUC, printed": partial(_cell, "auc Y", "~rank", "printed"),
    "CLS": partial(_cell, "recall@10 Y", "~cls"),
    "CLS, printed": partial(_cell, "recall@10 Y", "~cls", "printed"),
    "sampled AUC of Z": partial(_cell, "auc Z", "sampled"),
    "sampled AUC of Z, printed": partial(_cell, "auc Z", "sampled", "printed"),
    "AUC of Z": partial(_cell, "auc Z", "exact"),
    "spark, user": lambda: f"{1e6 * _spark_parts()['user']:.0f}",
    "systems, wrong": lambda: _shares(_wrong(rows("many_systems.csv")), max),
    "seeds, hold": lambda: _shares([1 - share for share in _wrong(_from_three_runs())], min),
    "users alone, least": lambda: _shares(_users_alone(), min),
    "users alone, most": lambda: _shares(_users_alone(), max),
    "races, least": lambda: _shares(_wrong(rows("many_races.csv")), min, 1),
    "races, most": lambda: _shares(_wrong(rows("many_races.csv")), max, 1),
    "t-tests, least": lambda: _shares(_column("many_races.csv", "found by repeated t-tests"), min),
    "t-tests, most": lambda: _shares(_column("many_races.csv", "found by repeated t-tests"), max),
    "wider 1000, least": lambda: _shares(_wider("1000"), min),
    "wider 1000, most": lambda: _shares(_wider("1000"), max),
    "wider 100, least": lambda: _shares(_wider("100"), min),
    "wider 100, most": lambda: _shares(_wider("100"), max),
    "covered": lambda: _shares(_column("interval_coverage.csv", "default"), min, 1),
    "rejected": lambda: _shares(_column("false_positives.csv", "likelihood"), max, 1),
    "covered by t": lambda: _shares(
        [float(_by_data("interval_coverage.csv")["MovieLens 1M", "rr"]["100"]["t"])], min, 1
    ),
    "honest, least": lambda: _shares(
        _column("honest_intervals.csv", "covers, all users", "covers, 1,000 users"), min, 1
    ),
    "verdicts": lambda: f"{len(rows('verdicts.csv')):,}",
    "order, least": lambda: _shares([_least_order()], min),
    "rank estimate AUC over m": partial(_cell, "auc Y", "~rank", "own_n"),
    "outside, least": partial(_off, min),
    "outside, most": partial(_off, max),
    "outside, allowed": lambda: f"{3 * float(_outside()[0]['standard_error']) + 0.005:.3f}",
    "figure 6": partial(_figure_6, "uncorrected", itemgetter(0)),
    "figure 6, least": partial(_figure_6, "uncorrected", min),
    "figure 6, most": partial(_figure_6, "uncorrected", max),
    "figure 6, corrected": partial(_figure_6, "corrected", itemgetter(0)),
    "figure 6, corrected, least": partial(_figure_6, "corrected", min),
    "figure 6, corrected, most": partial(_figure_6, "corrected", max),
    "spark, core-hours": lambda: f"{_core_hours():.0f}",
    "X, exact": partial(_honest, "nothing", "exact"),
    "X, nothing, low": partial(_honest, "nothing", "low"),
    "X, nothing, high": partial(_honest, "nothing", "high"),
    "X, falling, low": partial(_honest, "falling", "low"),
    "X, falling, high": partial(_honest, "falling", "high"),
    "sampled 100": partial(_limit, "sampled candidates", "100"),
    "sampled 300": partial(_limit, "sampled candidates", "300"),
    "sampled 1000": partial(_limit, "sampled candidates", "1000"),
    "switch, ms": partial(_switch, "ms"),
    "switch, CPU": partial(_switch, "CPU ms"),
    "switch, load": partial(_switch, "load"),
    "switches": partial(_switch, "switches"),
}
"""Numbers by the name that sentences have for them."""

TABLES: dict[str, Callable[[], str]] = {
    "spark": spark,
    "evaluators, first": lambda: evaluators(0, _IN_FIRST),
    "evaluators, others": lambda: evaluators(_IN_FIRST, None),
    "exact contest": exact_contest,
    "growth": growth,
    "below product": below_product,
    "limits": limits,
    "metrics from lists": metrics_from_lists,
    "recommending": recommending,
    "training": training,
    "reports": reports,
    "designs": designs,
    "comparison speed": comparison_speed,
    "large files": large_files,
    "training loop": training_loop,
    "readings": readings,
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
    "history": history,
    "reached": reached,
    "mutations": mutations,
    "samples": samples,
    "survivors": survivors,
}
"""Tables by the name in their comment; those of docs/results/estimators.md are in benchmarks/estimator_tables.py."""

if __name__ == "__main__":
    for page in PAGES:
        write_text(page, filled(page))
