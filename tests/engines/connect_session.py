"""Everything that Spark does, through Spark Connect; run as a process of its own, beside no other session."""

from typing import Any

import pandas as pd

import truerank as tr
from tests.engines.cases import assert_same, make


def main() -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", "2")
    spark: Any = builder.getOrCreate()
    case = make("connect", 40, users=60)
    assert case.train is not None
    factors = tuple(
        spark.createDataFrame(list(zip(ids, rows.tolist(), strict=True)), "id bigint, features array<float>")
        for ids, rows in ((case.user_ids, case.users), (case.item_ids, case.items))
    )
    assert type(factors[0]).__module__.startswith("pyspark.sql.connect")
    train, test = (spark.createDataFrame(pd.DataFrame(case.pairs(lists))) for lists in (case.train, case.test))
    frame, local = tr.spark.rank(factors, train=train, test=test, items_per_block=60), case.expected()
    assert_same(tr.Ranks.from_spark(frame), local)
    by = {user: ["few", "many"][user % 2] for user in case.user_ids}
    groups = spark.createDataFrame(list(by.items()), "id bigint, name string")
    found, expected = (tr.evaluate(*given) for given in ((frame, "ap"), (local, "ap")))
    assert abs(found["ap"].mean - expected["ap"].mean) < 1e-12
    assert tr.evaluate(frame, "ap", by=groups).groups == ("few", "many")
    assert tr.compare({"A": frame, "B": frame}, "ap")["B", "A"].p_value == 1.0
    sampled = tr.spark.rank_sampled(factors, train=train, test=test, design=tr.PopularitySampling(20), rng=1)
    assert tr.evaluate(sampled, "recall@10")["recall@10"].n == 60
    try:
        tr.evaluate(tr.spark.rank((factors[0].where("id > -50"), factors[1]), train=train, test=test), "ap")
    except tr.InputError as error:
        print(error)
    spark.stop()


if __name__ == "__main__":
    main()
