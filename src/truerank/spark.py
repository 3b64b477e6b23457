"""Ranks on Spark, from factors (exact or sampled) or from ranked lists, as dataframes that `evaluate` takes.

It needs PySpark 4 (``pip install 'truerank[spark]'``) and works in the session of the given dataframes; it never starts
one. See docs/spark.md.
"""

from truerank.engines.spark_ranks import rank, rank_sampled, read_lists

__all__ = ["rank", "rank_sampled", "read_lists"]
