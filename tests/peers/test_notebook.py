"""Results as a notebook shows them, by running one."""

from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="install the extra 'peers'")
nbclient = pytest.importorskip("nbclient", reason="install the extra 'peers'")

SETUP = """
import numpy as np, truerank as tr
data = tr.read_interactions({"ann": ["a", "b", "c"], "bob": ["b", "c", "d"], "<i>eve": ["a", "d", "b"]})
split = tr.leave_k_out(data, rng=0)
ranks = {"<script>": tr.Ranks.from_ranks([1, 2, 4], n=10), "B": tr.Ranks.from_ranks([3, 5, 9], n=10)}
many = {name: tr.Ranks.concatenate([one] * 40) for name, one in ranks.items()}
"""
CELLS = {
    "tr.evaluate(ranks, ['rr', 'mean-rank'])": ["<td>0.5833", "&lt;script&gt;", "<td>2.3333", "note: only 3 instances"],
    "tr.evaluate(many, ['rr', 'mean-rank'])": ["<b>0.5833", "<b>2.3333"],
    "tr.compare(ranks, 'rr')": ["&lt;script&gt;"],
    "tr.risk(ranks['B'], 'rr', design=3)": ["<th>bias</th>", "uniform(3)"],
    "tr.consistency(ranks, 'rr')": ["<table>"],
    "tr.audit({'X': {'recall@10': 0.6}}, n=1000, design=100)": ["exact recall@10"],
    "split": ["<th>train</th><th>test</th>", "<td>6</td><td>3</td>"],
    "data": [">events</td><td>9</td>"],
    "ranks['B']": [">instances</td><td>3</td>"],
    "tr.recommend(tr.Popularity().fit(split.train), split)": ["&lt;i&gt;eve", "Recommendations(3 users"],
}


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """Run all cells in one notebook, and return what each shows."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in (SETUP, *CELLS)])
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    return {cell.source: cell.outputs[0]["data"] for cell in notebook.cells[1:]}


@pytest.mark.parametrize("code", CELLS)
def test_results_are_tables_and_escaped(shown: dict[str, Any], code: str) -> None:
    page = shown[code]["text/html"]
    assert page.startswith("<table>")
    for part in CELLS[code]:
        assert part in page, page
    assert "<script>" not in page
    assert "<i>" not in page


def test_the_text_form_is_readable_too(shown: dict[str, Any]) -> None:
    lines = shown["tr.evaluate(ranks, ['rr', 'mean-rank'])"]["text/plain"].splitlines()
    assert lines[0].split() == ["rr", "mean-rank", "instances", "tied"]
