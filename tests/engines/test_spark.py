"""Spark on a real cluster of two executors on this machine, against the local engine.

It needs PySpark and Java, hence an environment of its own (`make test`).
"""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truerank as tr
from tests.arrays import AnyArray
from tests.cli.running import truerank
from tests.engines.cases import CASES, Case, assert_same, in_order, make
from tests.pages import run_block

pytest.importorskip("pyspark", reason="install the extra 'spark'")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("default")  # PySpark's own

SOURCE = str(Path(tr.__file__).parents[1])


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": SOURCE,
        "spark.log.level": "ERROR",
        "spark.task.maxFailures": "2",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("truerank")
    session = builder.config(map=settings).getOrCreate()
    yield session
    session.stop()


def factor_frame(spark: Any, ids: list[Any], rows: AnyArray) -> Any:
    number = "float" if rows.dtype == np.float32 else "double"
    kind = "string" if isinstance(ids[0], str) else "bigint"
    # in no order
    both = sorted(zip(ids, rows.tolist(), strict=True), key=lambda pair: hash(pair[1][0]))
    return spark.createDataFrame(both, f"id {kind}, features array<{number}>")


def pair_frame(spark: Any, case: Case, lists: list[list[int]], grades: list[list[float]] | None = None) -> Any:
    import pandas as pd

    columns = case.pairs(lists)
    extra = {} if grades is None else {"stars": np.concatenate(grades)}
    return spark.createDataFrame(pd.DataFrame(columns | extra).sample(frac=1, random_state=1))


def inputs(spark: Any, case: Case) -> dict[str, Any]:
    train = {} if case.train is None else {"train": pair_frame(spark, case, case.train)}
    grade = {} if case.grades is None else {"relevance": "stars"}
    factors = tuple(factor_frame(spark, *one) for one in ((case.user_ids, case.users), (case.item_ids, case.items)))
    return {"factors": factors, **train, "test": pair_frame(spark, case, case.test, case.grades), **grade}


def two_frames(spark: Any, case: Case) -> tuple[Any, Any]:
    """Return ranks by the factors, and by other item factors."""
    given = inputs(spark, case)
    users, _ = given.pop("factors")
    items = [factor_frame(spark, case.item_ids, rows) for rows in both_items(case)]
    one, other = (tr.spark.rank((users, own), **given).cache() for own in items)
    return one, other


def both_items(case: Case) -> tuple[AnyArray, AnyArray]:
    return case.items, case.items + np.random.default_rng(0).standard_normal(case.items.shape).astype(case.items.dtype)


SPREAD = list(zip(CASES, [1, 4, 7, 2] * 2, [None, 1, 3, 7] * 2, strict=True))


@pytest.mark.parametrize(("case", "blocks", "partitions"), SPREAD, ids=str)
def test_ranks_equal_those_of_the_local_engine(spark: Any, case: Case, blocks: int, partitions: int | None) -> None:
    per_block = -(-len(case.items) // blocks)
    frame = tr.spark.rank(**inputs(spark, case), items_per_block=per_block, partitions=partitions)
    assert_same(tr.Ranks.from_spark(frame), case.expected())


def test_result_is_lazy_and_a_plain_dataframe(spark: Any) -> None:
    case = make("lazy", 21, users=10)
    given = inputs(spark, case)
    missing = given["test"].union(spark.createDataFrame([(case.user_ids[0], 10**9)], "user bigint, item bigint"))
    frame = tr.spark.rank(**given | {"test": missing})  # nothing is ranked yet
    assert frame.columns == ["id", "n_candidates", "above", "tied", "items"]
    assert type(frame).__module__.startswith("pyspark.sql")
    with pytest.raises(tr.InputError, match="item 1000000000 of user -50 has no factors; leave it out"):
        tr.Ranks.from_spark(frame)


def test_item_factors_as_an_array_and_a_random_draw_of_users(spark: Any) -> None:
    case = make("array", 22, users=60)
    assert case.train is not None
    users = factor_frame(spark, list(range(60)), case.users)
    columns = ["user", "item"]
    pairs = [
        spark.createDataFrame([(user, item) for user, own in enumerate(lists) for item in own], columns)
        for lists in (case.train, case.test)
    ]
    given: dict[str, Any] = {"train": pairs[0], "test": pairs[1], "items_per_block": 64}
    expected = tr.rank(tr.Factors(case.users, case.items), train=case.train, test=case.test)
    assert_same(tr.Ranks.from_spark(tr.spark.rank((users, case.items), **given)), expected)
    drawn = [tr.spark.rank((users, case.items), **given, users=25, rng=3, partitions=n) for n in (1, 5)]
    first, second = (in_order(tr.Ranks.from_spark(frame)) for frame in drawn)
    assert len(first) == 25
    assert first == second == expected[np.asarray(first.ids)]


def test_estimates_differences_and_groups_equal_the_local_ones(spark: Any) -> None:
    case = make("evaluated", 23, tied=True, graded=True)
    one, other = two_frames(spark, case)
    local = {"A": case.expected(), "B": case.expected(both_items(case)[1])}
    metrics = ["ndcg@10", "recall@10", "auc", "gndcg@5"]
    by = {user: ["few", "many"][user % 2] for user in case.user_ids[:100]}
    adjustments: list[Any] = ["holm", "max-t", "benjamini-hochberg"]
    for groups, adjustment in zip((None, by, groups_frame(spark, by)), adjustments, strict=True):
        found = tr.evaluate({"A": one, "B": other}, metrics, by=groups)
        expected = tr.evaluate(local, metrics, by=None if groups is None else by)
        assert (found.groups, found.metrics) == (expected.groups, expected.metrics)
        assert_close(found.rows(), expected.rows())
        compared = tr.compare({"A": one, "B": other}, metrics, by=groups, adjustment=adjustment)
        reference = tr.compare(local, metrics, by=None if groups is None else by, adjustment=adjustment)
        assert [each.verdict for each in compared.differences] == [each.verdict for each in reference.differences]
        assert_close(
            [each.record() for each in compared.differences], [each.record() for each in reference.differences]
        )


def test_many_systems_and_what_is_no_merge_of_parts(spark: Any) -> None:
    case = make("many", 40, users=60)
    one, other = two_frames(spark, case)
    local = {"A": case.expected(), "B": case.expected(both_items(case)[1])}
    frames, ranks = {"A": one, "B": other, "C": one}, local | {"C": local["A"]}
    adjustments: list[Any] = ["holm", "max-t", "none"]
    for how in adjustments:
        found, expected = (tr.compare(each, "auc", adjustment=how, margin=0.2) for each in (frames, ranks))
        assert_close([each.record() for each in found], [each.record() for each in expected])
    mine, his = (tr.compare(each, "auc", adjustment="max-t").order() for each in (frames, ranks))
    assert (mine.best, mine.groups, mine.conclusion) == (his.best, his.groups, his.conclusion)
    assert [(each.first, each.last) for each in mine] == [(each.first, each.last) for each in his]
    refused: list[dict[str, Any]] = [{"adjustment": "tukey"}, {"test": "anytime"}, {"test": "t"}]
    for options in refused:
        with pytest.raises(
            tr.InputError, match="on Spark the test must be 'likelihood', and the adjustment not 'tukey'"
        ):
            tr.compare(frames, "auc", **options)
    runs: list[Any] = [{"A": [one, one], "B": other}, {"A": [one, one], "B": [other]}, {"A": [local["A"]], "B": other}]
    for several in runs:
        with pytest.raises(tr.InputError, match="on Spark each recommender has one run, got a list for 'A'"):
            tr.compare(several, "auc")
    split = tr.read_split({"u": ["a"]}, {"u": ["b"]})
    with pytest.raises(tr.InputError, match=r"DataFrame"):
        tr.race({"A": one, "B": other}, split, "auc")
    with pytest.raises(tr.InputError, match="must be Ranks"):
        tr.plan({"A": one, "B": other}, "auc")


def test_groups_of_items(spark: Any) -> None:
    case = make("groups of items", 34, tied=True)
    frame, local, metrics = tr.spark.rank(**inputs(spark, case)), case.expected(), ["ndcg@10", "ap", "auc"]
    found, expected = (tr.evaluate(ranks, metrics, by=item_groups(case)) for ranks in (frame, local))
    assert found.groups == expected.groups == ("head", "tail", "unknown")
    assert_close(found.rows(), expected.rows())
    one, other = two_frames(spark, case)
    both = {"A": local, "B": case.expected(both_items(case)[1])}
    compared, reference = (tr.compare(ranks, metrics, by=item_groups(case)) for ranks in ({"A": one, "B": other}, both))
    assert compared.groups == reference.groups
    assert_close([each.record() for each in compared.differences], [each.record() for each in reference.differences])


def test_weights_by_propensity(spark: Any) -> None:
    case = make("propensities", 38, tied=True)
    chance = {item: 1 / (1 + at % 7) for at, item in enumerate(case.item_ids)}
    one, other = two_frames(spark, case)
    local, frames = {"A": case.expected(), "B": case.expected(both_items(case)[1])}, {"A": one, "B": other}
    metrics = ["ndcg@10", "recall@10", "auc"]
    found, expected = (tr.evaluate(ranks, metrics, propensity=chance) for ranks in (frames, local))
    assert_close(found.rows(), expected.rows())
    assert "effective sample size" in " ".join(found.notes)
    compared, reference = (tr.compare(ranks, metrics, propensity=chance) for ranks in (frames, local))
    assert_close([each.record() for each in compared.differences], [each.record() for each in reference.differences])
    with pytest.raises(tr.InputError, match="ap counts the other relevant items above each one"):
        tr.evaluate(frames, "ap", propensity=chance)
    with pytest.raises(tr.InputError, match="`propensity` must be a Propensity, a dict from item to propensity"):
        tr.evaluate(frames, "recall@10", propensity=one.select("id"))


def test_designs_that_decide_the_top(spark: Any) -> None:
    case = make("decided", 39, users=100, held=2)
    design = tr.InverseSampling(2, decide=10, beyond=0.1)
    frame = tr.spark.rank_sampled(**inputs(spark, case), design=design, rng=1).cache()
    local, metrics = in_order(tr.Ranks.from_spark(frame)), ["recall@10", "ap"]
    found = tr.evaluate(frame, metrics)
    assert found.metrics == ("recall@10~unbiased", "ap~unbiased")
    assert_close(found.rows(), tr.evaluate(local, metrics).rows())


def item_groups(case: Case) -> tr.Groups:
    names = {item: "head" if at < 20 else "tail" for at, item in enumerate(case.item_ids[:-30])}
    return tr.Groups.named(np.array(list(names)), list(names.values()), of_items=True)


def assert_close(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Compare records: numbers up to the order of adding, all else exactly."""
    assert len(found) == len(expected)
    for mine, his in zip(found, expected, strict=True):
        assert mine.keys() == his.keys()
        for name, value in his.items():
            close = pytest.approx(value, rel=1e-10, abs=1e-13, nan_ok=True) if isinstance(value, float) else value
            assert mine[name] == close, name


def groups_frame(spark: Any, by: dict[Any, str]) -> Any:
    return spark.createDataFrame(list(by.items()), "customer bigint, activity string")


def test_no_row_per_user_reaches_the_driver(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.classic.dataframe import DataFrame

    sizes: list[int] = []
    collect = DataFrame.collect

    def counted(self: Any) -> Any:
        rows = collect(self)
        sizes.append(len(rows))
        return rows

    monkeypatch.setattr(DataFrame, "collect", counted)
    monkeypatch.setattr(DataFrame, "toArrow", None)
    monkeypatch.setattr(DataFrame, "toPandas", None)
    one, other = two_frames(spark, make("collected", 24))
    tr.evaluate(one, "ap")
    tr.compare({"A": one, "B": other}, "ap")
    assert sizes
    assert max(sizes) <= 4  # partitions


def test_unmatched_instances(spark: Any) -> None:
    case = make("unmatched", 25, users=40)
    one, other = two_frames(spark, case)
    part = other.where(f"id > {case.user_ids[9]}")
    with pytest.raises(tr.InputError, match="is missing from 'B'; leave such instances out with unmatched='drop'"):
        tr.compare({"A": one, "B": part}, "ap")
    dropped = tr.compare({"A": one, "B": part}, "ap", unmatched="drop")
    assert dropped.differences[0].n == 30
    assert "A: 10 instances that not all recommenders have are left out" in dropped.notes
    with pytest.raises(tr.InputError, match="have no instance in common"):
        tr.compare({"A": one.where("id < 0"), "B": other.where("id >= 0")}, "ap", unmatched="drop")


@pytest.mark.parametrize(
    "design", [tr.UniformSampling(20), tr.PopularitySampling(20, uniform=0.2), tr.HeadFirst(10)], ids=str
)
def test_sampled_ranks_have_the_expectation_of_their_design(spark: Any, design: tr.SamplingDesign) -> None:
    case = make("sampled", 26, users=400, held=2)
    frame = tr.spark.rank_sampled(**inputs(spark, case), design=design, rng=1, items_per_block=64)
    again = tr.spark.rank_sampled(**inputs(spark, case), design=design, rng=1, items_per_block=30)
    sampled, exact = in_order(tr.Ranks.from_spark(frame)), in_order(case.expected())
    assert sampled == in_order(tr.Ranks.from_spark(again))
    if isinstance(design, tr.HeadFirst):  # exact down to its depth
        assert np.array_equal(tr.values(sampled, "ndcg@10"), tr.values(exact, "ndcg@10"))
        return
    assert sampled.design == design
    metrics = ["auc~unbiased", "recall@10~possible"] if design.unequal_chances else ["auc", "recall@10~bv(0.1)"]
    gap = tr.values(sampled, metrics[0]) - tr.values(exact, "auc")
    assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(gap.size)
    assert_close(tr.evaluate(frame, metrics).rows(), tr.evaluate(sampled, metrics).rows())


def test_comparison_of_sampled_ranks(spark: Any) -> None:
    """All but the error over samples, which is estimated by random draws, equals that of the local engine."""
    case = make("compared", 36, users=300, held=2)
    given = inputs(spark, case)
    users, _ = given.pop("factors")
    items = [factor_frame(spark, case.item_ids, rows) for rows in both_items(case)]
    design = tr.UniformSampling(30)
    frames = {
        name: tr.spark.rank_sampled((users, own), **given, design=design, rng=seed).cache()
        for seed, (name, own) in enumerate(zip("AB", items, strict=True))
    }
    local = {name: in_order(tr.Ranks.from_spark(frame)) for name, frame in frames.items()}
    metrics = ["auc", "recall@10", "ap~bv(0.1)"]
    found, expected = (tr.compare(ranks, metrics, same_candidates=False) for ranks in (frames, local))
    drawn = {"sampling_error", "user_error", "order_probability"}
    records = [[each.record() for each in one.differences] for one in (found, expected)]
    assert_close(*([{name: row[name] for name in row.keys() - drawn} for row in rows] for rows in records))
    for mine, his in zip(*records, strict=True):
        assert mine["sampling_error"] == pytest.approx(his["sampling_error"], rel=0.2)
    assert (
        "intervals, p-values and verdicts are about the exact metric, whatever the distribution of the ranks"
        in found.notes
    )
    exact = tr.spark.rank((users, items[0]), **given)
    with pytest.raises(tr.InputError, match="recall@10 can only be compared among candidates chosen in one way"):
        tr.compare({"A": frames["A"], "exact": exact}, "recall@10")


def test_estimators_that_pool_all_ranks_are_refused(spark: Any) -> None:
    case = make("pooled", 27, users=20)
    frame = tr.spark.rank_sampled(**inputs(spark, case), design=tr.InverseSampling(2), rng=1)
    with pytest.raises(tr.InputError, match="ndcg@10~smooth rests on all ranks together; collect them with"):
        tr.evaluate(frame, "ndcg@10")
    assert tr.evaluate(frame, "ap").metrics == ("ap~unbiased",)
    with pytest.raises(tr.InputError, match="the test must be 'likelihood'"):
        tr.compare({"A": frame, "B": frame}, "ap~unbiased", test="bootstrap")
    with pytest.raises(tr.InputError, match="ndcg@10~smooth rests on all ranks together; collect them with"):
        tr.compare({"A": frame, "B": frame}, "ndcg@10")


def test_lists_and_their_truth(spark: Any) -> None:
    rng = np.random.default_rng(5)
    run = [(f"q{u}", f"d{item}", float(rng.integers(4))) for u in range(1, 40) for item in rng.permutation(20)[:8]]
    truth = [(f"q{u}", f"d{item}", int(rng.integers(0, 3))) for u in range(30) for item in rng.permutation(20)[:3]]
    frames = (
        spark.createDataFrame(run, "qid string, docno string, score double"),
        spark.createDataFrame(truth, "qid string, docno string, rel int"),
    )
    found = tr.Ranks.from_spark(tr.spark.read_lists(*frames, depth=8))
    expected = tr.read_lists(frames[0].toPandas(), frames[1].toPandas(), depth=8)
    assert described(found) == described(expected)
    table = tr.evaluate(tr.spark.read_lists(*frames, depth=8), ["ndcg@8", "gndcg@8"])
    assert_close(table.rows(), tr.evaluate(expected, ["ndcg@8", "gndcg@8"]).rows())
    with pytest.raises(tr.InputError, match="must have a column of scores or ranks"):
        tr.spark.read_lists(frames[0].drop("score"), frames[1], depth=8)
    with pytest.raises(tr.InputError, match="the user ids of `truth` are whole numbers, but those of `run` are text"):
        tr.spark.read_lists(frames[0], frames[1].selectExpr("1 as qid", "docno"), depth=8)


def described(ranks: tr.Ranks) -> list[tuple[Any, ...]]:
    """Return what is known of each relevant item; equally ranked ones of a user are in no order."""
    fields = [ranks.ids, ranks.n_candidates, ranks.n_relevant]
    users = [np.asarray(field)[ranks.instance].tolist() for field in fields]
    items = [np.asarray(field).tolist() for field in (ranks.above, ranks.tied, ranks.grades, ranks.items)]
    return sorted(zip(*users, *items, strict=True))


def test_an_als_model(spark: Any) -> None:
    from pyspark.ml.recommendation import ALS

    case = make("als", 28, users=30, items=40, seen=15)
    assert case.train is not None
    columns = "user int, item int, rating float"
    train, test = (
        spark.createDataFrame([(user, item, 1.0) for user, own in enumerate(lists) for item in own], columns)
        for lists in (case.train, case.test)
    )
    model = ALS(rank=4, maxIter=2, implicitPrefs=True, seed=1).fit(train)
    known = {row.id for row in model.itemFactors.collect()}
    users = {row.id for row in model.userFactors.collect()}
    test = test.where(test.item.isin(*known) & test.user.isin(*users)).select("user", "item")
    ranks = in_order(tr.Ranks.from_spark(tr.spark.rank(model, train=train, test=test)))
    factors = [
        sorted((row.id, row.features) for row in one.collect()) for one in (model.userFactors, model.itemFactors)
    ]
    rows = [np.array([values for _, values in one], np.float32) for one in factors]
    ids = [np.array([name for name, _ in one]) for one in factors]
    places = [{name: at for at, name in enumerate(own.tolist())} for own in ids]
    lists = [
        [sorted(places[1][row.item] for row in pairs if row.user == user) for user in ids[0].tolist()]
        for pairs in (train.collect(), test.collect())
    ]
    expected = tr.rank(tr.Factors(*rows), train=lists[0], test=lists[1])
    assert ranks.above.tolist() == expected.above.tolist()
    assert ranks.ids.tolist() == ids[0][expected.ids].tolist()  # type: ignore[union-attr]
    sizes = {"n_users": ids[0].size, "n_items": ids[1].size}
    named = [
        dataclasses.replace(tr.Interactions.of(own, "events", **sizes), user_ids=ids[0], item_ids=ids[1])
        for own in lists
    ]
    local = tr.rank(model, train=named[0], test=named[1])
    assert local.above.tolist() == expected.above.tolist(), "the factors are collected and matched by id"


def test_the_example_of_models_of_other_libraries(spark: Any) -> None:
    from pyspark.ml.recommendation import ALS

    events = [(user, item, 1.0) for user in range(12) for item in range(user % 3, 20, 3)]
    ratings = spark.createDataFrame(events, "user int, item int, rating float")
    split = tr.leave_k_out({user: [item for other, item, _ in events if other == user] for user in range(12)}, rng=0)
    names: dict[str, Any] = {"tr": tr, "ALS": ALS, "ratings": ratings, "split": split}
    run_block("models.md", "ALS(userCol", names)
    assert names["ranks"].ids.tolist() == list(range(12))


def test_the_code_of_the_page(spark: Any) -> None:
    case = make("page", 35, users=40, seen=10)
    given = inputs(spark, case)
    user_factors, item_factors = given.pop("factors")
    page = Path(__file__).parents[2] / "docs" / "spark.md"
    on_spark = page.read_text().partition("## Lists that a job has written")[0]
    code = [part.partition("```")[0] for part in on_spark.split("```python\n")[1:]]
    run = spark.createDataFrame([("q1", "d1", 2.0), ("q1", "d2", 1.0)], "query string, doc string, score double")
    names: dict[str, Any] = {
        "model": (user_factors, item_factors),
        "user_factors": user_factors,
        "item_factors": item_factors,
        "other_ranks": tr.spark.rank((user_factors, item_factors), **given),
        "run": run,
        "qrels": run.selectExpr("query", "doc", "1 as rel"),
        "segments": groups_frame(spark, dict.fromkeys(case.user_ids, "all")),
        **given,
    }
    assert len(code) == 5
    exec("\n".join(code), names)
    assert_same(names["local"], case.expected())
    assert case.train is not None
    assert names["shared"] == sum(len(set(a) & set(b)) for a, b in zip(case.train, case.test, strict=True)) > 0
    assert names["idle"] == 0


def test_empty_partitions_skewed_partitions_and_nobody(spark: Any) -> None:
    case = make("skewed", 29, users=90)
    given = inputs(spark, case)
    few = case.user_ids[:3]
    part = given["test"].where(given["test"].user.isin(*few))
    frame = tr.spark.rank(**given | {"test": part}, partitions=16)
    assert_same(tr.Ranks.from_spark(frame), case.expected()[:3])
    assert tr.evaluate(frame, "ap")["ap"].n == 3
    # nearly all users in one partition
    skewed = tr.spark.rank(**given, partitions=1).repartition(4, "n_candidates")
    assert tr.evaluate(skewed, "ap")["ap"].mean == pytest.approx(tr.evaluate(case.expected(), "ap")["ap"].mean)
    nobody = tr.spark.rank(**given | {"test": given["test"].where("user > 10000")})
    assert len(tr.Ranks.from_spark(nobody)) == 0
    assert tr.evaluate(nobody, "ap")["ap"].n == 0


def test_wrong_types_are_refused_before_the_work(spark: Any) -> None:
    case = make("types", 30, users=5, items=20)
    given = inputs(spark, case)
    users, items = given["factors"]

    def refused(message: str, **changes: Any) -> None:
        with pytest.raises(tr.InputError) as caught:
            tr.spark.rank(**given | changes)
        assert message in str(caught.value)

    refused("factors must be an ALSModel or a pair (users, items), got int", factors=3)
    refused("the user factors must be a Spark dataframe, got ndarray", factors=(case.users, items))
    refused(
        "must have a column of ids and an array of float or double, got id bigint", factors=(users.select("id"), items)
    )
    refused("`test` must be a Spark dataframe, got list", test=[[1]])
    refused("`test` has no column for the item", test=given["test"].select("user"))
    halves, text = (
        given["test"].selectExpr("user * 0.5D user", "item"),
        given["train"].selectExpr("user", "string(item) item"),
    )
    refused("the user ids of `test` must be whole numbers or text, got double", test=halves)
    refused("the item ids of `train` are text, but those of the factors are whole", train=text)
    refused("`partitions` must be a whole number from 1, got 0", partitions=0)
    refused("`users` must be a whole number from 1, got 0", users=0)
    refused("`test` has no column 'stars' for the relevance", relevance="stars")
    refused("each item must have factors once, but -90 does not", factors=(users, items.union(items)))
    refused("rng", rng="x")
    with pytest.raises(tr.InputError, match="either all ranks are Spark dataframes or none, got Ranks for 'B'"):
        tr.evaluate({"A": tr.spark.rank(**given), "B": case.expected()}, "ap")
    with pytest.raises(tr.InputError, match="on Spark there is no `convention`"):
        tr.evaluate(tr.spark.rank(**given), "ap", convention="ranx")
    with pytest.raises(tr.InputError, match="a design can't have a proxy of its own"):
        tr.spark.rank_sampled(**given, design=tr.HeadFirst(3, proxy=np.eye(3)))


def test_ids_that_do_not_match(spark: Any) -> None:
    case = make("ids", 31, users=20)
    given = inputs(spark, case)
    users, items = given["factors"]
    fewer = tr.spark.rank(**given | {"factors": (users.where("id > -50"), items)})
    with pytest.raises(tr.InputError, match="user -50 has no factors"):
        tr.evaluate(fewer, "ap")
    shifted = given["train"].selectExpr("user", "item + 1000000 as item")
    with pytest.raises(tr.InputError, match=r"of user .* has no factors; leave it out"):
        tr.evaluate(tr.spark.rank(**given | {"train": shifted}), "ap")


def test_the_command_takes_the_master_from_the_environment(tmp_path: Path) -> None:
    case = make("files", 33, users=30, items=50)
    assert case.train is not None
    for name, rows in (("users", case.users), ("items", case.items)):
        np.save(tmp_path / f"{name}.npy", rows)
        pq.write_table(pa.table({"id": np.arange(len(rows)), "features": list(rows)}), tmp_path / f"{name}.parquet")
    for name, lists in (("train", case.train), ("test", case.test)):
        pairs = [(user, item) for user, own in enumerate(lists) for item in own]
        users, items = (list(map(int, column)) for column in zip(*pairs, strict=True))
        pq.write_table(pa.table({"user": users, "item": items}), tmp_path / f"{name}.parquet")
    files = ["--train", tmp_path / "train.parquet", "--test", tmp_path / "test.parquet"]
    factors = {kind: [tmp_path / f"{name}.{kind}" for name in ("users", "items")] for kind in ("npy", "parquet")}
    submit = "--master local[1] --driver-memory 512m --conf spark.ui.enabled=false pyspark-shell"
    env = {"PYSPARK_SUBMIT_ARGS": submit, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    on_spark = ["rank", "--engine", "spark", "--factors", *factors["parquet"], *files]
    done = truerank(*on_spark, "-o", tmp_path / "spark.npz", **env)
    assert done.returncode == 0, done.stderr
    refused = truerank(*on_spark, "--format-of", "test=csv", "-o", tmp_path / "spark.npz", **env)
    assert "--format-of is for the local engine" in refused.stderr
    assert truerank("rank", "--factors", *factors["npy"], *files, "-o", tmp_path / "local.npz").returncode == 0
    assert_same(tr.Ranks.load(tmp_path / "spark.npz"), tr.Ranks.load(tmp_path / "local.npz"))


def test_spark_connect() -> None:
    pytest.importorskip("grpc", reason="install pyspark[connect]")
    env = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "tests.engines.connect_session"]
    folder = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=folder, env=os.environ | env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("user -50 has no factors.\n"), "errors on executors are those of this process"


def test_an_executor_that_is_killed_does_not_change_the_answer(spark: Any, tmp_path: Path) -> None:
    case = make("killed", 32, users=60)
    frame = tr.spark.rank(**inputs(spark, case), items_per_block=40, partitions=12)
    started = tmp_path / "started"

    def slowly(batches: Any) -> Any:
        for batch in batches:
            started.touch()
            time.sleep(1)
            yield batch

    killed: list[int] = []

    def kill() -> None:
        while not started.exists():
            time.sleep(0.05)
        killed.append(executors()[0])
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    ranks = tr.Ranks.from_spark(frame.mapInArrow(slowly, frame.schema))
    thread.join()
    assert killed
    assert killed[0] not in executors()
    assert_same(ranks, case.expected())
    paths = tmp_path / "undisturbed.parquet", tmp_path / "killed.parquet"
    for path, found in zip(paths, (tr.Ranks.from_spark(frame), ranks), strict=True):
        in_order(found).save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def executors() -> list[int]:
    """Return the processes of executors below this process."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and is_below(int(folder.name), os.getpid()):
                found.append(int(folder.name))
    return found


def is_below(pid: int, ancestor: int) -> bool:
    while pid > 1:
        status = Path(f"/proc/{pid}/status").read_text()
        pid = int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])
        if pid == ancestor:
            return True
    return False
