"""What conventions refuse and note, and their page; the numbers are compared with the tools in tests/peers."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from truerank.core.conventions import CONVENTIONS

DOCS = Path(__file__).parents[2] / "docs"
RANKS = tr.Ranks.from_ranks([[1, 3, 20], [2]], n=50)


def test_the_page_is_up_to_date() -> None:
    page = runpy.run_path(str(DOCS / "make_conventions.py"))["page"]()
    assert page == (DOCS / "conventions.md").read_text(), "run docs/make_conventions.py"


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_definition_is_a_metric(name: str) -> None:
    for text, definition in CONVENTIONS[name].metrics.items():
        for form in (text, definition.text):
            assert str(tr.metric(form.replace("@k", "@7"))) == form.replace("@k", "@7")
    assert not set(CONVENTIONS[name].refused) & set(CONVENTIONS[name].metrics)


@pytest.mark.parametrize(
    ("metric", "convention", "message"),
    [
        ("ap@2", "trec", "unknown convention 'trec'; did you mean 'trec_eval'"),
        ("ap@2", "nobody", "unknown convention 'nobody'; choose from trec_eval, ir-measures"),
        ("f1@2", "trec_eval", "f1@2 can't be computed as trec_eval does; choose from precision@k, recall@k"),
        (
            "auc",
            "implicit",
            "auc can't be computed as implicit does: it counts training items as irrelevant",
        ),
        ("ap(relevant)@2", "ranx", r"ap\(relevant\)@2 can't be computed as ranx does"),
        ("recall@2~bv(0.1)", "ranx", r"recall@2~bv\(0.1\) can't be computed as ranx does"),
    ],
)
def test_what_is_refused(metric: str, convention: str, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.evaluate(RANKS, metric, convention=convention)


def test_what_else_is_refused() -> None:
    sampled = tr.Ranks.from_sampled([1, 2], m=10, n=100)
    with pytest.raises(tr.InputError, match="ranx ranks all candidates, but these ranks are among sampled ones"):
        tr.evaluate(sampled, "ap", convention="ranx")
    with pytest.raises(tr.InputError, match="give either `by` or `convention`, not both"):
        tr.evaluate(RANKS, "ap", convention="ranx", by={0: "a"})
    short = tr.read_lists({"u": ["a"]}, {"u": ["a", "b", "c"]})
    with pytest.raises(tr.InputError, match="at least as long as the largest number of relevant items, 3;"):
        tr.evaluate(short, "ndcg", convention="trec_eval")


def test_notes_say_what_is_computed() -> None:
    table = tr.evaluate({"A": RANKS, "B": RANKS}, ["ap@2", "precision@2"], convention="implicit")
    assert "precision@2 as in implicit: precision(achievable)@2, weighted by achievable items" in "\n".join(table.notes)
    assert table["A", "precision@2"].mean == pytest.approx(2 / 3)
    assert tr.evaluate(RANKS, "ap@2", convention="ranx")["ap@2"].mean == pytest.approx((1 / 3 + 1 / 2) / 2)


def test_a_pooled_mean_has_the_error_of_a_ratio() -> None:
    """Against the jackknife of the ratio itself."""
    rng = np.random.default_rng(0)
    ranks = tr.Ranks.from_ranks([np.sort(rng.permutation(60)[: rng.integers(1, 20)] + 1) for _ in range(300)], n=60)
    cell = tr.evaluate(ranks, "precision@10", convention="implicit")["precision@10"]
    hits, weights = 10 * tr.values(ranks, "precision@10"), np.minimum(ranks.n_relevant, 10)
    assert cell.mean == pytest.approx(hits.sum() / weights.sum())
    without = (hits.sum() - hits) / (weights.sum() - weights)
    jackknife = np.sqrt(299 / 300 * np.square(without - without.mean()).sum())
    assert cell.standard_error == pytest.approx(jackknife, rel=0.01)


def test_equal_scores_in_the_order_of_a_tool() -> None:
    run, truth = {"u": {"10": 1.0, "9": 1.0, "8": 1.0}}, {"u": ["10"]}
    places = {tool: tr.read_lists(run, truth, convention=tool) for tool in ("trec_eval", "rectools", "ranx")}
    assert {tool: (one.above[0], one.tied[0]) for tool, one in places.items()} == {
        "trec_eval": (2, 0),  # "10" is the smallest text
        "rectools": (0, 0),
        "ranx": (0, 2),
    }


def test_users_without_a_list() -> None:
    run, truth = {"u": ["a"]}, {"u": ["a"], "v": ["b"]}
    dropped, missed = (tr.read_lists(run, truth, convention=tool) for tool in ("trec_eval", "ir-measures"))
    assert (len(dropped), len(missed)) == (1, 2)
    assert any("has no list ('v') and is left out" in note for note in dropped.notes)
    assert any("has no list ('v'): their relevant items count" in note for note in missed.notes)
    with pytest.raises(tr.InputError, match="unknown convention 'x'"):
        tr.read_lists("missing.csv", "missing.csv", convention="x")
