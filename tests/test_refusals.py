"""Calls that a new user may well make: each works, or is refused by one sentence that says what to do."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import truerank as tr

RANKS = tr.Ranks.from_ranks([1, 2, 5], n=50)
SPLIT = tr.leave_k_out(
    tr.read_interactions({f"u{user}": [f"i{(user + item) % 9}" for item in range(5)] for user in range(9)}), 2, rng=0
)
LISTS = tr.recommend(tr.Popularity().fit(SPLIT.train), SPLIT, k=2)
SAVED = pa.table({"id": [[1], [2]], "n_candidates": [5, 5], "above": [[1], [2]], "tied": [[0], [0]]})
PUBLIC: Any = tr  # whose arguments are wrong on purpose


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PUBLIC.risk(RANKS, "ap", 1.5), "`design` must be a sampling design, or a text such as 'uniform(100)'"),
        (lambda: PUBLIC.rank_sampled(RANKS, design=tr.UniformSampling), "`design` must be a sampling design"),
        (lambda: PUBLIC.evaluate([RANKS, RANKS], "ap"), "`ranks` must be Ranks, got list; several recommenders are a"),
        (lambda: PUBLIC.evaluate({"A": [RANKS]}, "ap"), "`ranks` must be Ranks, got list; several recommenders are a"),
        (lambda: PUBLIC.values([RANKS], "ap"), "`ranks` must be Ranks, got list"),
        (lambda: PUBLIC.estimate({"A": RANKS}, "ap"), "`ranks` must be Ranks, got dict"),
        (lambda: PUBLIC.risk([RANKS], "ap", design=10), "`ranks` must be Ranks, got list"),
        (lambda: PUBLIC.compare([RANKS, RANKS], "ap"), "at least two recommenders, by name"),
        (lambda: PUBLIC.consistency([RANKS, RANKS], "ap"), "at least two recommenders, by name"),
        (lambda: PUBLIC.consistency({"A": RANKS, "B": 1}, "ap"), "`ranks` must be Ranks, got int"),
        (lambda: PUBLIC.plan([RANKS, RANKS], "ap"), "exactly two recommenders, by name"),
        (lambda: PUBLIC.Split([[0]], [[1]]), "`train` must be Interactions, as `Interactions.of` makes them"),
        (lambda: PUBLIC.UniformSampling("a"), "`m` must be a whole number from 1, got 'a'"),
        (lambda: PUBLIC.UniformSampling(np.inf), "`m` must be a whole number from 1, got inf"),
        (lambda: PUBLIC.InverseSampling([2]), "`hits` must be a whole number from 1, got [2]"),
        (lambda: PUBLIC.InverseSampling(hits="2"), "`hits` must be a whole number from 1, got '2'"),
        (lambda: PUBLIC.HeadFirst(k=np.nan), "`k` must be a whole number from 1, got nan"),
        (lambda: PUBLIC.PopularitySampling(100, np.ones(5)), "`power` must be a finite number, got an array of shape"),
        (lambda: PUBLIC.PopularitySampling(100, "1"), "`power` must be a finite number, got '1'"),
        (lambda: PUBLIC.write_report(LISTS, "report.html"), "a report is about ranks, not lists"),
        (lambda: PUBLIC.write_report({"A": LISTS}, "report.html"), "a report is about ranks, not lists"),
        (lambda: PUBLIC.write_report({"A": 1}, "report.html"), "a report is about ranks by name"),
        (lambda: PUBLIC.read_ranks(SAVED), "the column 'id' of a table of ranks must hold one value per entry"),
        (lambda: PUBLIC.read_ranks(pa.table({"user": [[1]], "rank": [1], "n": [5]})), "must have one user per row"),
        (lambda: PUBLIC.read_split(b"train", b"test"), "can't read from bytes; give a path as text"),
        (lambda: PUBLIC.read_split(b"folder"), "unless `train` is a directory that holds both, got b'folder'"),
        (lambda: PUBLIC.evaluate(RANKS, "ap")[1], "this Evaluation has 1 row, got the position 1"),
        (lambda: PUBLIC.risk(RANKS, "ap", 9)["rr"], "the rows of this Risk are ('ap', 'uniform(9)'), got 'rr'"),
        (lambda: PUBLIC.evaluate(RANKS, "ap").to_frame("dask"), "`backend` must be one of 'pandas', 'polars'"),
        (lambda: PUBLIC.register_adapter("mine")(5), "the adapter of mine must be a function of model and data, got 5"),
        (lambda: PUBLIC.estimators.as_prior([-1, 2]), "a prior must be a list of weights, none negative"),
        (lambda: PUBLIC.estimators.as_prior("a"), "`weights` must hold numbers, got 'a'"),
        (lambda: PUBLIC.estimators.learn_prior(5), "`ranks` must be Ranks, got int"),
        (lambda: PUBLIC.Ranks.from_ranks(5, n=9), "`ranks` must be a list of numbers, or of lists of them, got 5"),
        (lambda: PUBLIC.rank(tr.Popularity(), SPLIT), "Popularity has no scores yet: fit it first, as in Popularity"),
        (lambda: PUBLIC.evaluate(LISTS, "covrage@2"), "unknown metric 'covrage@2'; did you mean 'coverage@2'?"),
        (lambda: PUBLIC.evaluate(LISTS, "intra@2"), "unknown metric 'intra@2'; did you mean 'intra-list-distance@2'?"),
        (lambda: PUBLIC.evaluate(LISTS, "originality@2"), "unknown metric 'originality@2'; choose from accuracy, "),
        (lambda: PUBLIC.evaluate(LISTS, "ndcg@2"), "ndcg@2 compares lists with relevant items: give these as `truth`"),
        (lambda: PUBLIC.evaluate(RANKS, "lauc@10"), "unknown metric 'lauc@10'; did you mean 'pauc@10'?"),
        (lambda: PUBLIC.rank(np.full(SPLIT.test.shape, -np.inf), SPLIT), "leave items out with `train` or `exclude`"),
        (lambda: PUBLIC.rank_sampled(lambda users, items: -np.inf * (users + 1), SPLIT, design=1), "leave items out"),
    ],
)  # fmt: skip
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(tr.InputError, match=re.escape(message)) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_designs_by_their_text_form() -> None:
    model, exact = tr.Popularity().fit(SPLIT.train), {"A": RANKS, "B": tr.Ranks.from_ranks([3, 9, 1], n=50)}
    assert tr.rank_sampled(model, SPLIT, design="uniform(2)", rng=0) == tr.rank_sampled(model, SPLIT, design=2, rng=0)
    assert tr.risk(RANKS, "ap", "uniform(9)").mean == tr.risk(RANKS, "ap", design=9).mean
    assumed = tr.risk(RANKS, "ap~bv(0.1)", design=9, assumed="uniform(9, replace)")
    assert assumed.mean == tr.risk(RANKS, "ap~bv(0.1)", design=9, assumed=tr.UniformSampling(9, replace=True)).mean
    assert str(tr.consistency(exact, "ap", "uniform")) == str(tr.consistency(exact, "ap"))
    table = tr.estimators.correction_table("ap~cls", "uniform(4)", n=21)
    assert table.tolist() == tr.estimators.correction_table("ap~cls", design=4, n=21).tolist()
    for given in ("inverse(3)", ["inverse(3)"], tr.InverseSampling(3)):
        assert "inverse(3)" in {each.design for each in tr.plan(exact, "ap", given, rng=0).designs}
    sampled = tr.Ranks(above=[1], n_candidates=11, sample=tr.Sample("uniform(10)", n_catalogue=100))
    assert sampled.design == tr.UniformSampling(10)


def test_a_model_whose_shape_is_not_whole(tmp_path: Path) -> None:
    tr.ItemKNN().fit(SPLIT.train).save(tmp_path / "model.npz")
    arrays = dict(np.load(tmp_path / "model.npz"))
    np.savez(tmp_path / "model.npz", **arrays | {"history_shape": arrays["history_shape"] + 0.5})
    with pytest.raises(tr.InputError, match="the model file is damaged: its history is not a valid matrix"):
        tr.load_model(tmp_path / "model.npz")
