"""Groups add up to the whole, and are what a slow count says."""

from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import truerank as tr

RNG = np.random.default_rng(0)
TRAIN = [sorted(set(RNG.zipf(1.5, size=user % 9) % 40)) for user in range(60)]
TEST = [sorted(set(range(40)) - set(TRAIN[user]))[user % 7 : user % 7 + user % 4] for user in range(60)]
SPLIT = tr.Split(
    tr.Interactions.of(TRAIN, "train", n_users=60, n_items=40), tr.Interactions.of(TEST, "test", n_users=60, n_items=40)
)
SCORES = RNG.integers(0, 6, size=(60, 40)).astype(float)
RANKS = tr.rank(SCORES, SPLIT)
METRICS = ["ndcg@10", "recall@5", "ap", "rr", "auc", "mean-rank"]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("groups", [tr.by_popularity(SPLIT), tr.by_activity(SPLIT)], ids=["items", "users"])
def test_groups_add_up_to_the_whole(metric: str, groups: tr.Groups) -> None:
    table = tr.evaluate(RANKS, metric, by=groups)
    weighed = [(cell.mean, cell.n if cell.weight is None else cell.weight) for cell in table.estimates]
    assert len(weighed) > 3
    assert sum(weight for _, weight in weighed) == pytest.approx(len(RANKS), rel=1e-12)
    whole = sum(mean * weight for mean, weight in weighed) / len(RANKS)
    assert whole == pytest.approx(tr.estimate(RANKS, metric).mean, rel=1e-12)


def test_groups_of_users_are_the_estimates_of_their_users() -> None:
    sizes = np.array([len(items) for items in TRAIN])
    table = tr.evaluate(RANKS, "ap", by=tr.by_activity(SPLIT, bounds=[2, 5]))
    assert table.groups == (
        "no training events", "1 to 2 training events", "3 to 5 training events", "6 training events or more",
    )  # fmt: skip
    assert RANKS.ids is not None
    own = sizes[RANKS.ids]
    for group, chosen in zip(
        table.groups, [own == 0, (own > 0) & (own <= 2), (own > 2) & (own <= 5), own > 5], strict=True
    ):
        assert table["recommender", "ap", group] == tr.estimate(RANKS[chosen], "ap")
        assert table["ap", group] == table["recommender", "ap", group]


def test_recall_of_groups_of_items_by_a_slow_count() -> None:
    counts = np.bincount(np.concatenate([np.array(items, dtype=int) for items in TRAIN]), minlength=40)
    table = tr.evaluate(RANKS, "recall@5", by=tr.by_popularity(SPLIT, bounds=[3]), ties="optimistic")
    found: dict[str, float] = defaultdict(float)
    weight: dict[str, float] = defaultdict(float)
    for user, items in enumerate(TEST):
        rest = [item for item in range(40) if item not in TRAIN[user] and item not in items]
        best_first = sorted(items, key=lambda item: -SCORES[user, item])
        for place, item in enumerate(best_first):
            above = sum(SCORES[user, other] > SCORES[user, item] for other in rest)
            name = (
                "no training events" if counts[item] == 0
                else "1 to 3 training events" if counts[item] <= 3 else "4 training events or more"
            )  # fmt: skip
            found[name] += (above + place + 1 <= 5) / len(items)
            weight[name] += 1 / len(items)
    for name in weight:
        assert table["recall@5", name].mean == pytest.approx(found[name] / weight[name], rel=1e-12)
        assert table["recall@5", name].weight == pytest.approx(weight[name], rel=1e-12)


def test_standard_error_of_a_group_of_items_is_near_its_jackknife() -> None:
    groups = tr.by_popularity(SPLIT, bounds=[3])
    cell = tr.evaluate(RANKS, "ap", by=groups)["ap", "4 training events or more"]
    rest = [
        tr.evaluate(RANKS[np.arange(len(RANKS)) != at], "ap", by=groups)["ap", "4 training events or more"].mean
        for at in range(len(RANKS))
    ]
    jackknife = np.sqrt(np.square(np.array(rest) - np.mean(rest)).sum() * (len(rest) - 1) / len(rest))
    assert cell.standard_error == pytest.approx(jackknife, rel=0.05)


def test_relevant_items_that_tie_share_what_they_add() -> None:
    ranks = tr.Ranks(above=[0, 0], tied=[1, 1], n_candidates=3, indptr=[0, 2], items=["x", "y"])
    table = tr.evaluate(ranks, "ap", by=tr.Groups.named(np.array(["x", "y"]), ["x", "y"], of_items=True))
    assert table["ap", "x"].mean == pytest.approx(table["ap", "y"].mean, rel=1e-12)


@pytest.mark.parametrize(
    "by",
    [
        {"ann": "new", "bob": "old"},
        pd.DataFrame({"user": ["ann", "bob"], "kind": ["new", "old"]}),
        pl.DataFrame({"user": ["ann", "bob"], "kind": ["new", "old"]}),
        tr.by_column(pd.DataFrame({"kind": ["new", "old"], "who": ["ann", "bob"], "x": [1, 2]}), "kind", id="who"),
    ],
)
def test_groups_from_dicts_and_frames(by: Any) -> None:
    ranks = tr.Ranks.from_ranks([1, 2, 4], n=9, ids=["bob", "ann", "eve"])
    table = tr.evaluate({"A": ranks, "B": ranks[:2]}, ["rr", "ap"], by=by)
    assert table.groups == ("new", "old", "unknown")
    assert [table["A", "rr", group].mean for group in table.groups] == [0.5, 1.0, 0.25]
    assert table["B", "rr", "unknown"].n == 0
    assert [row["group"] for row in table.rows()][:6] == ["new", "new", "old", "old", "unknown", "unknown"]
    assert str(table).splitlines()[0].split() == ["group", "rr", "ap", "instances", "tied"]
    assert "only 1 instance: too few for an interval" in str(table)


def test_numbers_and_texts_are_the_same_ids() -> None:
    ranks = tr.Ranks.from_ranks([1, 2], n=9, ids=[7, 8])
    table = tr.evaluate(ranks, "rr", by={"7": "a", "8": "b"})
    assert table.groups == ("a", "b")
    assert not [note for note in table.notes if "with a group" in note]


NONE = "no id with a group{} is in the results (such as 7): all are in the group 'unknown'"


@pytest.mark.parametrize(
    ("by", "note"),
    [
        ({7: "a", 8: "b", 9: "b"}, "1 of 3 ids with a group is not in the results"),
        ({"9": "a", "8": "b", "6": "c"}, "2 of 3 ids with a group are not in the results"),
        ({"u7": "a"}, NONE.format(" (such as 'u7')")),
        ({"x" * 99: "a"}, NONE.format(f" (such as '{'x' * 37}...')")),
        ({}, NONE.format("")),
    ],
)
def test_ids_with_a_group_that_have_no_results_are_counted(by: dict[Any, str], note: str) -> None:
    ranks = {name: tr.Ranks.from_ranks(places, n=9, ids=[7, 8]) for name, places in {"A": [1, 2], "B": [2, 1]}.items()}
    assert note in tr.evaluate(ranks, "rr", by=by).notes
    assert note in tr.compare(ranks, "rr", by=by).notes
    lists = tr.read_recommendations({7: [1], 8: [2]})
    assert note in tr.evaluate(lists, "coverage@1", by=by).notes
    assert note in tr.evaluate(lists, ["coverage@1", "rr@1"], by=by, truth={7: [1], 8: [1]}).notes


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_missing_names_of_groups_are_unknown(missing: Any) -> None:
    ranks = tr.Ranks.from_ranks([1, 2], n=9, ids=[7, 8])
    frame = pd.DataFrame({"id": [7, 8], "kind": pd.Series(["a", missing], dtype=object)})
    assert tr.evaluate(ranks, "rr", by={7: "a", 8: missing}).groups == ("a", "unknown")
    assert tr.evaluate(ranks, "rr", by=frame).groups == ("a", "unknown")
    assert tr.evaluate(ranks, "rr", by={7: "a", 8: "nan"}).groups == ("a", "nan")


def test_an_id_is_in_one_group() -> None:
    frame = pd.DataFrame({"item": ["m1", "m2", "m2"], "genre": ["drama", "drama", "comedy"]})
    with pytest.raises(tr.InputError, match="each id must be in one group, but 'm2' is in 'comedy' and 'drama'"):
        tr.by_column(frame, items=True)
    assert tr.by_column(frame.iloc[[0, 1, 1]], items=True).names == ("drama",)
    assert tr.by_column(pd.DataFrame({"id": [np.nan, np.nan], "kind": ["a", "b"]})).names == ("a", "b")
    with pytest.raises(tr.InputError, match=r"`ids` must be one-dimensional, got shape \(1, 2\)"):
        tr.evaluate(RANKS, "rr", by={(1, 2): "a"})


def test_users_of_a_split_without_held_out_items_are_no_reason_for_a_note() -> None:
    ranks = tr.Ranks.from_ranks([1], n=9, ids=[1])
    train, test = (
        tr.Interactions.of(rows, name, n_items=2) for name, rows in (("train", [[0], [1]]), ("test", [[], [0]]))
    )
    groups = tr.by_activity(tr.Split(train, test))
    assert not [note for note in tr.evaluate(ranks, "rr", by=groups).notes if "with a group" in note]


def test_what_is_no_group() -> None:
    with pytest.raises(tr.InputError, match="a dict or a dataframe from id to name, got int"):
        tr.evaluate(RANKS, "rr", by=3)
    with pytest.raises(tr.InputError, match="need ranks that know their items"):
        tr.evaluate(tr.Ranks.from_ranks([1], n=5), "rr", by=tr.by_popularity(SPLIT))
    with pytest.raises(tr.InputError, match="`bounds` must be ascending"):
        tr.by_activity(SPLIT, bounds=[5, 2])
    with pytest.raises(tr.InputError, match="`column` must be named"):
        tr.by_column(pd.DataFrame({"id": [1], "a": [2], "b": [3]}))
    with pytest.raises(tr.InputError, match="got 'c'"):
        tr.by_column(pd.DataFrame({"id": [1], "a": [2]}), "c")
    with pytest.raises(tr.InputError, match="several columns of the same name"):
        tr.evaluate(RANKS, "rr", by=pd.DataFrame([["u", "new"]], columns=["user", "user"]))
    weighted = tr.evaluate(RANKS, "rr", by=tr.by_popularity(SPLIT)).estimates[0]
    with pytest.raises(tr.InputError, match="estimates of groups of items can't be added to others"):
        weighted + tr.estimate(RANKS, "rr")


def test_groups_of_items_in_parts_of_the_instances_add_up() -> None:
    groups, half = tr.by_popularity(SPLIT), len(RANKS) // 2
    parts = [tr.evaluate(own, "rr", by=groups) for own in (RANKS[:half], RANKS[half:])]
    whole = tr.evaluate(RANKS, "rr", by=groups)
    for group in whole.groups:
        found, expected = (
            (cell.mean, cell.standard_error, cell.weight, *cell.confidence_interval())
            for cell in (
                parts[0]["recommender", "rr", group] + parts[1]["recommender", "rr", group],
                whole["recommender", "rr", group],
            )
        )
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("test", ["t", "bootstrap", "randomisation"])
@pytest.mark.parametrize("groups", [tr.by_popularity(SPLIT), tr.by_activity(SPLIT)], ids=["items", "users"])
def test_differences_of_groups(groups: tr.Groups, test: Any) -> None:
    ranks = {"A": RANKS, "B": tr.rank(RNG.normal(size=(60, 40)), SPLIT)}
    result = tr.compare(ranks, ["ap", "recall@5"], by=groups, test=test, replicates=500, rng=0)
    table = tr.evaluate(ranks, ["ap", "recall@5"], by=groups)
    assert result.groups == table.groups
    for group in table.groups:
        found = result["B", "A", "ap", group]
        mean, base = table["B", "ap", group], table["A", "ap", group]
        assert found.mean == pytest.approx(mean.mean, rel=1e-12)
        assert found.difference == pytest.approx(mean.mean - base.mean, rel=1e-9)
        assert found.n == mean.n
    assert len({each.p_value for each in result.differences}) > 3
    assert [each.group for each in result.differences[:2]] == [table.groups[0]] * 2
    with pytest.raises(tr.InputError, match="name recommender, baseline, metric and group"):
        result["B", "A"]


def test_a_group_of_users_is_compared_as_if_it_were_alone() -> None:
    ranks = {"A": RANKS, "B": tr.rank(RNG.normal(size=(60, 40)), SPLIT)}
    assert RANKS.ids is not None
    by = {user: "even" if user % 2 == 0 else "odd" for user in RANKS.ids.tolist()}
    one = tr.compare(ranks, "ap", by=by)["B", "A", "ap", "even"]
    alone = tr.compare({name: each[RANKS.ids % 2 == 0] for name, each in ranks.items()}, "ap")["B", "A"]
    assert (one.difference, one.standard_error, one.p_value) == (alone.difference, alone.standard_error, alone.p_value)


def test_those_without_a_name_and_those_without_a_row_are_one_group() -> None:
    frame = pd.DataFrame({"user": [0, 1], "age": ["old", None]})
    ranks = tr.Ranks.from_ranks([1, 2, 4], n=5, ids=[0, 1, 2])
    table = tr.evaluate(ranks, "rr", by=frame)
    assert table.groups == ("old", "unknown")
    assert table["rr", "unknown"].mean == 0.375


@pytest.mark.parametrize("design", [tr.UniformSampling(50), tr.InverseSampling(2), tr.InverseSampling(2, most=60)])
def test_intervals_of_the_exact_metric_are_those_of_each_group_alone_in_any_order_of_metrics(
    design: tr.SamplingDesign,
) -> None:
    ids = np.arange(60) // 2
    exact = tr.Ranks.from_ranks(np.random.default_rng(0).integers(1, 201, 60), n=200, ids=ids)
    sampled = design.draw(exact, rng=1)
    metrics = ["ap~smooth", "ap~monotone", *(["ap~unbiased"] if str(design) == "inverse" else [])]
    groups = {user: "odd" if user % 2 else "even" for user in range(30)}
    for order in (metrics, metrics[::-1]):
        table = tr.evaluate(sampled, order, by=groups)
        for metric in order:
            for group, found in zip(table.groups, (table[metric, name] for name in table.groups), strict=True):
                alone = tr.estimate(sampled[np.isin(ids, [u for u in groups if groups[u] == group])], metric)
                assert (found.exact_range is None) == (alone.exact_range is None) == metric.endswith("unbiased")
                if found.exact_range is not None:
                    assert found.confidence_interval() == pytest.approx(alone.confidence_interval(), rel=1e-9)
