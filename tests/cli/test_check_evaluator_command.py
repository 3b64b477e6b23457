"""``truerank check-evaluator``."""

import json
from pathlib import Path

import pytest

from tests.cli.running import refusal, run_here

SOURCE = """
def evaluate(run, truth, k):
    hits = [sum(item in truth[user] for item, _ in sorted(items, key=lambda pair: -pair[1])[:k + 1])
            for user, items in run.items()]
    return {"hits": sum(hit > 0 for hit in hits) / len(hits)}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    name = f"evaluator_{tmp_path.name.replace('-', '_')}"  # unlike that of any other test, because modules are kept
    Path(f"{name}.py").write_text(SOURCE)
    return name


def test_a_function_of_a_module(module: str) -> None:
    done = run_here("check-evaluator", f"{module}:evaluate")
    assert "1 to 6 of k = 5: off by one" in done.stdout, done.output
    rows = json.loads(run_here("check-evaluator", f"{module}:evaluate", "-f", "json").stdout)["rows"]
    assert {"question": "ranks that count", "answer": "1 to 6 of k = 5: off by one", "kind": "fault"} in rows


def test_what_is_refused(module: str) -> None:
    assert "a function is given as package.module:function" in refusal("check-evaluator", module)
    assert "can't be imported" in refusal("check-evaluator", f"{module}:nothing")
    assert "can't be imported" in refusal("check-evaluator", "no_such_module:evaluate")
