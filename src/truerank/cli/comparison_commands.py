"""``truerank compare`` and ``gate``: which recommender is better, and whether a new one may replace an old one."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import truerank as tr
from truerank.cli import options
from truerank.cli.output import say_sentence, show_notes, show_table

if TYPE_CHECKING:
    from truerank.evaluation.differences import Acceptance


@click.command()
@options.sources_argument("RANKS_OR_RUN")
@options.metrics_option()
@options.reads_inputs
@click.option("--baseline", metavar="NAME", help="Compare all others with this one (default: all pairs).")
@options.test_option
@options.choice_option(
    "--adjustment",
    ["holm", "max-t", "tukey", "benjamini-hochberg", "none"],
    "How p-values, intervals and verdicts allow for the number of tests.",
)
@options.number_option(
    "--margin",
    help="A difference that does not matter: verdicts also say who differs by less, or is not worse by more.",
)
@options.level_option
@options.unmatched_option
@options.assume_option
@click.option("--same-candidates", is_flag=True, help="All recommenders were ranked among the same sampled candidates.")
@options.seed_option("--test bootstrap, randomisation")
@options.whole_option(
    "--replicates", default="10000", show_default=True, smallest=100, largest=10_000_000, help="Number of resamples."
)
@options.format_option
def compare(sources: dict[str, str], metrics: tuple[str, ...], inputs: options.Inputs, form: str, **how: Any) -> None:
    """Compare recommenders pair by pair, on the same instances.

    RANKS_OR_RUN are files of two recommenders or more, as for `truerank evaluate`, named by NAME or
    by the file. Instances are matched by id. On sampled ranks, an order is claimed only if the
    sample determines it.

    \b
    truerank compare old=a.parquet new=b.parquet -m ndcg@10,recall@10
    truerank compare als=a.parquet bpr=b.parquet pop=c.parquet -m ndcg@10 --baseline pop --test bootstrap
    truerank compare a.trec b.trec --truth test.csv -m ndcg@10 --by activity --train train.csv
    """
    from truerank.evaluation.comparisons import conclusions

    ranks = inputs.ranks(sources)
    result = tr.compare(ranks, metrics, by=inputs.groups(ranks), progress=True, **how)
    show_table(result, form, conclusions=conclusions(result))


EXIT_CODES: dict[Acceptance, int] = {"passes": 0, "fails": 1, "cannot tell": 3}
"""1 means worse and nothing else; any failure is 2 or more."""
SUMMARY = "GITHUB_STEP_SUMMARY"
"""Variable that names the file to which Markdown for GitHub's job summary is appended."""


@click.command()
@click.argument("new", metavar="[NAME=]NEW")
@click.option("--against", "old", metavar="[NAME=]OLD", required=True, help="File of the recommender in use.")
@options.metrics_option("For instance ndcg@10.{repeated} All of them must pass.")
@options.margins_option
@options.reads_inputs
@options.level_option
@options.test_option
@options.unmatched_option
@options.assume_option
@options.seed_option("--test bootstrap, randomisation")
@click.option(
    "-f", "--format", "form", type=click.Choice(["text", "json", "markdown", "junit"]), default="text",
    show_default=True, help="Output format.",
)  # fmt: skip
def gate(
    new: str,
    old: str,
    metrics: tuple[str, ...],
    margins: options.Margins,
    inputs: options.Inputs,
    level: float,
    form: str,
    **how: Any,
) -> None:
    """Say whether a new recommender is acceptable in place of an old one, for release pipelines.

    NEW and OLD are files of ranks or of lists, as for `truerank evaluate`. Exit code 0: a loss of the
    margin or more can be ruled out, by every metric and in every group. 1: NEW is worse by more than
    the margin; nothing else ends with 1. 2: input that can't be used. 3: the data do not settle it; the
    message says how many users probably would. If you repeat the test while users are added, use
    `--test anytime`. On GitHub the result is also added to the job summary.

    \b
    truerank gate new.parquet --against old.parquet -m ndcg@10 --margin 0.002
    truerank gate v2=runs/2.parquet --against v1=runs/1.parquet -m recall@20 --margin 0 --level 0.99
    truerank gate new.parquet --against old.parquet -m ndcg@10,recall@20 --margin 1% --margin recall@20=0.005
    truerank gate new.parquet --against old.parquet -m ndcg@10 --margin 2% --by groups.csv -f markdown
    """
    if not 0.5 < level < 1:
        raise tr.InputError(f"--level must lie between 0.5 and 1 for a gate, got {level:g}.")
    margins.check(metrics)
    ranks = inputs.ranks(_named(new, old))
    result = tr.compare(ranks, metrics, by=inputs.groups(ranks), level=level, progress=True, **how)
    found = [Check.of(each.reversed(), margins) for each in result.differences]
    show_notes(result.notes)
    _FORMS[form](found)
    if path := os.environ.get(SUMMARY):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{_as_markdown(found)}\n")
    click.get_current_context().exit(EXIT_CODES[decided(found)])


def _named(new: str, old: str) -> dict[str, str]:
    """Return both paths by name: 'new' and 'old' if the files have the same name."""
    (name, new_path), (other, old_path) = (next(iter(options.named_paths([text]).items())) for text in (new, old))
    return {"new": new_path, "old": old_path} if name == other else {name: new_path, other: old_path}


@dataclass(frozen=True)
class Check:
    """One metric, in one group, of a gate."""

    found: tr.Difference
    margin: float
    decision: Acceptance

    @classmethod
    def of(cls, found: tr.Difference, margins: options.Margins) -> Check:
        """Return the decision; a gate passes if all checks do and fails if one does, so each is tested by itself."""
        from truerank.evaluation.differences import acceptance

        margin = margins.of(found.metric, found.baseline_mean)
        by_itself = replace(found, adjusted_p_value=found.p_value, adjusted_level=found.level)
        passes = acceptance(by_itself, margin) == "passes"
        fails = acceptance(found, margin) == "fails"
        return cls(by_itself if passes else found, margin, "passes" if passes else "fails" if fails else "cannot tell")

    @property
    def name(self) -> str:
        """The metric, and the group if there are groups."""
        return f"{self.found.metric} in {self.found.group}" if self.found.group else self.found.metric

    @property
    def sentence(self) -> str:
        """The decision with its reasons."""
        remark = f"; {self.found.finding.remark}" if self.found.finding.remark else ""
        needed = f"; {self._needed()}" if self.decision == "cannot tell" else ""
        return f"{self._verdict()}: {self._values()}{remark}{needed}."

    @property
    def _level(self) -> float:
        """The level: a two-sided test says who is better, a one-sided one if the loss is below or above the margin."""
        from truerank.evaluation.differences import one_sided

        two_sided = self.decision == "cannot tell" or self.found.finding.winner == self.found.recommender
        return self.found.adjusted_level if two_sided or not self.margin else one_sided(self.found.adjusted_level)

    def _verdict(self) -> str:
        new, old = self.found.recommender, self.found.baseline
        if self.decision == "fails":
            return f"fails: {new} is worse than {old}" + (f" by more than {self.margin:.3g}" if self.margin else "")
        if self.decision == "cannot tell":
            loss = f"worse than {old} by {self.margin:.3g} or more" if self.margin else f"better than {old}"
            return f"cannot tell whether {new} is {loss}"
        if self.found.finding.winner == new:
            return f"passes: {new} is better than {old}"
        return f"passes: {new} is not worse than {old} by {self.margin:.3g} or more"

    def _values(self) -> str:
        found, (low, high) = self.found, self.found.confidence_interval(self._level)
        return (
            f"{self.name} {found.mean:.4f} against {found.baseline_mean:.4f}, a difference of {found.difference:+.4f} "
            f"({100 * self._level:.4g} % interval {low:+.4f} to {high:+.4f}, {found.n} instances)"
        )

    def _needed(self) -> str:
        if self.found.bounded:
            return "the sampled candidates do not determine it, so rank all of them"
        needed = self.found.instances_needed(self.margin, level=self.found.level)
        if not math.isfinite(needed):
            return "no number of instances would settle it if the true difference is the observed one"
        return f"about {max(int(needed), self.found.n + 1):,} instances would settle it with a probability of 80 %"

    def record(self) -> dict[str, Any]:
        """Return all numbers by name."""
        low, high = self.found.confidence_interval(self._level)
        names = ("metric", "group", "recommender", "baseline", "mean", "baseline_mean", "difference", "n")
        own = {name: getattr(self.found, name) for name in names}
        interval = {"level": self._level, "low": low, "high": high}
        return {"decision": self.decision, **own, "margin": self.margin, **interval, "sentence": self.sentence}


def decided(checks: Sequence[Check]) -> Acceptance:
    """Return the decision of the whole gate."""
    decisions = {each.decision for each in checks}
    return "fails" if "fails" in decisions else "cannot tell" if "cannot tell" in decisions else "passes"


def _in_all(checks: Sequence[Check]) -> str:
    """Return what several checks add up to."""
    decisions = [each.decision for each in checks]
    counts = [
        f"{decisions.count(kind)} of {len(checks)} {words}" for kind, words in _COUNTED.items() if kind in decisions
    ]
    return f"{decided(checks)}: {', '.join(counts)}."


_COUNTED: dict[Acceptance, str] = {"passes": "pass", "fails": "fail", "cannot tell": "cannot tell"}


def _show_text(checks: Sequence[Check]) -> None:
    for each in checks:
        say_sentence(each.sentence)
    if len(checks) > 1:
        say_sentence(_in_all(checks))


def _as_markdown(checks: Sequence[Check]) -> str:
    from truerank.core.tables import markdown, markdown_text

    header = ("", "new", "old", "difference", "interval", "margin", "decision")
    rows = []
    for each in checks:
        low, high = each.found.confidence_interval(each._level)
        numbers = (f"{each.found.mean:.4f}", f"{each.found.baseline_mean:.4f}", f"{each.found.difference:+.4f}")
        texts = (each.name, *numbers, f"{low:+.4f} to {high:+.4f}", f"{each.margin:.3g}", each.decision)
        rows.append([markdown_text(text) for text in texts])
    title = f"**{decided(checks)}**: {checks[0].found.recommender} against {checks[0].found.baseline}"
    return f"{title}\n\n{markdown(header, rows)}\n"


def _as_junit(checks: Sequence[Check]) -> str:
    """Return a test suite with a case per check; one that can't tell is an error."""
    from xml.etree import ElementTree

    kinds: dict[Acceptance, str] = {"fails": "failure", "cannot tell": "error"}
    counts = {f"{kind}s": str([each.decision for each in checks].count(name)) for name, kind in kinds.items()}
    suite = ElementTree.Element("testsuite", {"name": "truerank gate", "tests": str(len(checks)), **counts})
    for each in checks:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "truerank.gate", "name": each.name})
        if each.decision in kinds:
            ElementTree.SubElement(case, kinds[each.decision], {"message": each.sentence})
        else:
            ElementTree.SubElement(case, "system-out").text = each.sentence
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False)


def _as_json(checks: Sequence[Check]) -> str:
    from truerank.core.tables import json_text

    return json_text({"decision": decided(checks), "checks": [each.record() for each in checks]})


_FORMS: dict[str, Callable[[Sequence[Check]], None]] = {
    "text": _show_text,
    "json": lambda checks: click.echo(_as_json(checks)),
    "markdown": lambda checks: click.echo(_as_markdown(checks)),
    "junit": lambda checks: click.echo(_as_junit(checks)),
}
