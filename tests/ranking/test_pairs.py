"""Counts of scored pairs against counting one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truerank as tr
from tests import reference
from truerank.ranking.exact import count_pairs, rank_pairs


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.booleans()), min_size=1))
def test_against_counting_one_by_one(pairs: list[tuple[int, int, bool]]) -> None:
    users, scores, relevant = (np.array(column) for column in zip(*pairs, strict=True))
    counts = count_pairs(users, scores.astype(float), relevant)
    above, tied, same = [], [], []
    for user in range(4):
        own = [(score, hit) for one, score, hit in pairs if one == user]
        found = reference.count([score for score, _ in own], [hit for _, hit in own])
        above += found[0]
        tied += found[1]
        wanted = sorted((score for score, hit in own if hit), reverse=True)
        same += [place > 0 and wanted[place - 1] == score for place, score in enumerate(wanted)]
    assert (counts.above.tolist(), counts.tied.tolist(), counts.same_score.tolist()) == (above, tied, same)
    assert sorted(counts.order.tolist()) == np.flatnonzero(relevant).tolist()
    assert np.all(np.diff(users[counts.order]) >= 0)


def test_grades_follow_their_pairs() -> None:
    users, items = np.array([1, 0, 0, 1, 0]), np.arange(5)
    relevant = np.array([True, True, False, True, True])
    grades = np.array([7.0, 1.0, 8.0, 2.0])  # of pairs 0, 1, 3 and 4
    ranks = rank_pairs(users, items, np.array([0.1, 0.2, 0.3, 0.4, 0.5]), relevant, grades)
    assert ranks.grades is not None
    assert ranks.grades.tolist() == [2.0, 1.0, 8.0, 7.0]
    assert (ranks.above.tolist(), ranks.n_candidates.tolist()) == ([0, 1, 0, 0], [3, 2])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_named(bad: float) -> None:
    with pytest.raises(tr.InputError, match=r"scores must be finite, got .* for user 4 and item 9"):
        rank_pairs(np.array([4, 4]), np.array([8, 9]), np.array([0.0, bad]), np.array([True, False]))
