"""Ranks down to a depth: the same metrics as from full ranks, or a refusal."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import truerank as tr

METRICS = ["recall@10", "ndcg@10", "ap@7", "rr@10", "precision@1", "hit@3"]
REFUSED = {
    "auc": "auc needs the whole ranking",
    "ap": "ap needs the whole ranking",
    "ndcg@11": "ndcg@11 looks at rank 11",
}


def scorers(rng: np.random.Generator) -> dict[str, Any]:
    """Return scorers of 40 users and 600 items; the coarse ones have many ties."""
    users, items = rng.standard_normal((40, 5)), rng.standard_normal((600, 5)) * rng.exponential(1, (600, 1))
    single, coarse = (users.astype(np.float32), items.astype(np.float32)), (users.round(), items.round())
    matrix = coarse[0] @ coarse[1].T
    return {
        "float64": tr.Factors(users, items),
        "float32": tr.Factors(*single),
        "bias": tr.Factors(*single, rng.standard_normal(600).astype(np.float32)),
        "cosine": tr.Factors.cosine(*single),
        "euclidean": tr.Factors.euclidean(*single),
        "coarse": tr.Factors(*coarse),
        "matrix": matrix,
        "function": lambda chosen: matrix[chosen],
    }


def held_out(rng: np.random.Generator, graded: bool) -> tuple[Any, Any]:
    """Return training and held-out items, some of them the same; users 5 and 6 have none held out."""
    train, test = (sp.csr_array((rng.random((40, 600)) < share).astype(np.float64)) for share in (0.2, 0.02))
    test = sp.csr_array(sp.diags_array(~np.isin(np.arange(40), [5, 6]) * 1.0) @ test)
    test.eliminate_zeros()
    if graded:
        test.data[:] = rng.integers(1, 4, test.data.size)
    return train, test


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("name", scorers(np.random.default_rng(0)))
def test_metrics_are_those_of_full_ranks_or_refused(name: str, graded: bool) -> None:
    rng = np.random.default_rng(1)
    scorer, (train, test) = scorers(rng)[name], held_out(rng, graded)
    full, top = tr.rank(scorer, train=train, test=test), tr.rank(scorer, train=train, test=test, depth=10)
    assert top.depth == 10
    assert 0 < (full.above < 10).sum() < full.above.size
    for metric in METRICS:
        np.testing.assert_array_equal(tr.values(top, metric), tr.values(full, metric), err_msg=metric)
    for metric, reason in REFUSED.items():
        with pytest.raises(tr.InputError, match=f"^{reason}, but these ranks are cut at depth 10"):
            tr.evaluate(top, metric)


class Hasty(tr.ScoreMatrix):
    """Counts no further than it must: `depth` candidates above, no ties, and the order left as it is."""

    def count_top(self, train: Any, test: Any, depth: int, **options: Any) -> Any:
        counts = self.count(train, test, **options)
        deep = counts.above >= depth
        return counts._replace(above=np.minimum(counts.above, depth), tied=np.where(deep, 0, counts.tied))


def test_equal_scores_are_looked_for_within_the_depth_alone() -> None:
    """Counts of the last item of the first user differ when it is counted again: that says nothing of the next user."""
    scores = np.array([[9, 9, 8, 1, 0, *[5] * 20], [9, 9, 7, 6, 6, *[5] * 20]])
    test = sp.csr_array(([1, 2, 3, 1, 2, 2, 1, 3, 2, 1], ([0] * 5 + [1] * 5, [*range(5)] * 2)), shape=scores.shape)
    full, top = tr.rank(scores, test=test), tr.rank(Hasty(scores), test=test, depth=4)
    assert full.same_score is not None
    np.testing.assert_array_equal(top.same_score, full.same_score)
    np.testing.assert_array_equal(tr.values(top, "ndcg@4"), tr.values(full, "ndcg@4"))


def test_listed_candidates_and_several_scorers() -> None:
    rng = np.random.default_rng(2)
    both, (train, test) = scorers(rng), held_out(rng, graded=False)
    named = {name: both[name] for name in ("float32", "matrix")}
    listed = [list(range(user, 400)) for user in range(40)]
    full = tr.rank(named, train=train, test=test, candidates=listed)
    top = tr.rank(named, train=train, test=test, candidates=listed, depth=10)
    for name in named:
        np.testing.assert_array_equal(tr.values(top[name], "ndcg@10"), tr.values(full[name], "ndcg@10"))


def test_all_that_takes_ranks_takes_these(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    both, (train, test) = scorers(rng), held_out(rng, graded=False)
    named = {name: both[name] for name in ("float32", "cosine")}
    full, top = tr.rank(named, train=train, test=test), tr.rank(named, train=train, test=test, depth=10)
    assert tr.evaluate(top, METRICS).to_dict() == tr.evaluate(full, METRICS).to_dict()
    assert tr.compare(top, "ndcg@10").to_dict() == tr.compare(full, "ndcg@10").to_dict()
    for ending in ("parquet", "npz"):
        path = tmp_path / f"ranks.{ending}"
        top["float32"].save(path)
        assert tr.Ranks.load(path) == top["float32"]
    tr.write_report(top, tmp_path / "report.html")
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize("depth", [0, -1, 2.5, "10", True])
def test_depths_that_are_none(depth: Any) -> None:
    with pytest.raises(tr.InputError, match="`depth` must be a whole number from 1, got"):
        tr.rank(np.eye(3), test=[[1], [2], [0]], depth=depth)
