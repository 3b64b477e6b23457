"""``truerank audit``."""

import json

import truerank as tr
from tests.cli.running import refusal, run_here

NUMBERS = ["X=recall@10:0.6619", "Y=recall@10:0.5651", "--sampled", "100", "--candidates", "3706"]


def test_the_range_and_the_conclusion() -> None:
    done = run_here("audit", *NUMBERS, "--users", "6040")
    assert "do not determine whether X or Y is better" in done.stdout
    content = json.loads(run_here("audit", *NUMBERS, "-f", "json").stdout)
    found = tr.audit({"X": {"recall@10": 0.6619}, "Y": {"recall@10": 0.5651}}, n=3_706, design=100)
    assert [row["high"] for row in content["rows"]] == [each.high for each in found.ranges]


def test_what_is_refused() -> None:
    assert "NAME=METRIC:NUMBER" in refusal("audit", "0.66", *NUMBERS[2:])
    assert "recall@10 of X is given twice" in refusal("audit", NUMBERS[0], *NUMBERS)
    assert "must be a number such as 0.6619" in refusal("audit", "X=ap:much", *NUMBERS[2:])
