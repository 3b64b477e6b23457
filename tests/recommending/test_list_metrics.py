"""Metrics of lists against loops over users and items, written from their definitions."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truerank as tr
from truerank.metrics.definitions import METRICS
from truerank.recommending.list_metrics import GROUPS, LIST_METRICS, CountMetric, Surroundings, TailShare

N_ITEMS = 12


def lists_of(rows: list[list[int]], k: int = 4) -> tr.Recommendations:
    sizes = [len(row) for row in rows]
    items = np.array([item for row in rows for item in row], dtype=np.int64)
    return tr.Recommendations(
        items, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.arange(len(rows)), np.arange(N_ITEMS), k
    )


def slow_coverage(rows: list[list[int]], **_: Any) -> float:
    return len({item for row in rows for item in row}) / N_ITEMS


def slow_gini(rows: list[list[int]], **_: Any) -> float:
    """Half the mean absolute difference of two items' counts, over the mean count."""
    counts = [sum(row.count(item) for row in rows) for item in range(N_ITEMS)]
    differences = sum(abs(a - b) for a, b in itertools.product(counts, counts)) / N_ITEMS**2
    return differences / 2 / (sum(counts) / N_ITEMS)


def slow_entropy(rows: list[list[int]], **_: Any) -> float:
    counts = [sum(row.count(item) for row in rows) for item in range(N_ITEMS)]
    return -sum(count / sum(counts) * math.log2(count / sum(counts)) for count in counts if count)


def slow_popularity(rows: list[list[int]], train: list[list[int]], **_: Any) -> float:
    return mean_of_means(rows, lambda item: sum(item in history for history in train))


def slow_tail_share(rows: list[list[int]], train: list[list[int]], **_: Any) -> float:
    users = {item: sum(item in history for history in train) for item in range(N_ITEMS)}
    head, taken = set(), 0
    for item in sorted(users, key=lambda item: (-users[item], item)):
        if taken >= 0.8 * sum(users.values()):
            break
        head.add(item)
        taken += users[item]
    return mean_of_means(rows, lambda item: item not in head)


def slow_novelty(rows: list[list[int]], train: list[list[int]], **_: Any) -> float:
    active = sum(bool(history) for history in train)
    return mean_of_means(rows, lambda item: -math.log2(max(sum(item in own for own in train), 1) / active))


def slow_distance(rows: list[list[int]], vectors: Any, **_: Any) -> float:
    def cosine(a: int, b: int) -> float:
        return float(vectors[a] @ vectors[b] / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b]))

    distances = [[1 - cosine(a, b) for a, b in itertools.combinations(row, 2)] for row in rows if len(row) > 1]
    return float(np.mean([np.mean(own) for own in distances])) if distances else math.nan


def slow_personalisation(rows: list[list[int]], **_: Any) -> float:
    pairs = list(itertools.combinations([set(row) for row in rows if row], 2))
    return 1 - float(np.mean([len(a & b) / math.sqrt(len(a) * len(b)) for a, b in pairs])) if pairs else math.nan


def slow_serendipity(rows: list[list[int]], train: list[list[int]], truth: list[list[int]], k: int, **_: Any) -> float:
    users = {item: sum(item in history for history in train) for item in range(N_ITEMS)}
    by_popularity = sorted(users, key=lambda item: (-users[item], item))
    total = 0.0
    for row, relevant in zip(rows, truth, strict=False):
        gaps = [by_popularity.index(item) - place for place, item in enumerate(row) if item in relevant]
        total += sum(max(gap, 0) / N_ITEMS for gap in gaps) / k
    return total / len(rows)


def slow_calibration(rows: list[list[int]], train: list[list[int]], vectors: Any, **_: Any) -> float:
    def shares(items: list[int]) -> Any:
        return np.mean([vectors[item] / sum(vectors[item]) for item in items], axis=0)

    found = []
    for row, history in zip(rows, train, strict=False):
        past, own = shares(history), shares(row)
        mixed = 0.99 * own + 0.01 * past
        found.append(sum(p * math.log(p / q) for p, q in zip(past, mixed, strict=True) if p))
    return sum(found) / len(found)


def slow_judged(rows: list[list[int]], truth: list[list[int]], k: int, **_: Any) -> float:
    return sum(len(set(row) & set(own)) / k for row, own in zip(rows, truth, strict=False)) / len(rows)


def mean_of_means(rows: list[list[int]], number: Any) -> float:
    means = [sum(map(number, row)) / len(row) for row in rows if row]
    return sum(means) / len(means)


SLOW: dict[str, Any] = {
    "coverage": slow_coverage,
    "gini": slow_gini,
    "entropy": slow_entropy,
    "popularity": slow_popularity,
    "tail-share": slow_tail_share,
    "novelty": slow_novelty,
    "intra-list-distance": slow_distance,
    "personalisation": slow_personalisation,
    "serendipity": slow_serendipity,
    "calibration": slow_calibration,
    "judged": slow_judged,
}

rows_of_items = st.lists(st.permutations(range(N_ITEMS)).map(lambda order: list(order)[:4]), min_size=1, max_size=9)
histories = st.lists(st.sets(st.integers(0, N_ITEMS - 1), min_size=1).map(sorted), min_size=1, max_size=9)


def test_every_metric_has_a_slow_definition() -> None:
    assert set(SLOW) | {"overlap", "rbo"} == set(LIST_METRICS.names)


@pytest.mark.parametrize("name", SLOW)
@given(rows=rows_of_items, train=histories, seed=st.integers(0, 9))
@settings(max_examples=20)
def test_metrics_are_their_definitions(name: str, rows: list[list[int]], train: list[list[int]], seed: int) -> None:
    if not set(itertools.chain(*(row[:4] for row in rows))) & set(itertools.chain(*train)):
        train = [*train, rows[0]]
    rng = np.random.default_rng(seed)
    vectors = rng.random((N_ITEMS, 3)) if name == "calibration" else rng.standard_normal((N_ITEMS, 3))
    truth = [rng.permutation(N_ITEMS)[:5].tolist() for _ in rows]
    data = tr.Interactions.of(train, "train", n_items=N_ITEMS)
    table = tr.evaluate(lists_of(rows), [f"{name}@{k}" for k in (1, 4)], train=data, item_vectors=vectors, truth=truth)
    for k in (1, 4):
        expected = SLOW[name]([row[:k] for row in rows], train=train, vectors=vectors, truth=truth, k=k)
        assert table[f"{name}@{k}"].mean == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_a_judgement_may_be_that_an_item_is_irrelevant() -> None:
    lists = tr.read_recommendations({"ann": ["a", "b", "c"], "bob": ["b", "a", "x"]})
    truth = {"ann": {"a": 0, "b": 2}, "bob": {"c": 1}}
    train = tr.read_interactions({"ann": ["c", "a"], "bob": ["c"], "eve": ["b"]})
    table = tr.evaluate(lists, ["judged@3", "serendipity@3"], truth=truth, train=train)
    assert table["judged@3"].mean == pytest.approx((2 / 3 + 0) / 2)
    # c is the most popular item, then a, b and x: b is third by popularity and second in the list, of four items
    assert table["serendipity@3"].mean == pytest.approx(1 / 4 / 3 / 2)
    for name, words in {
        "judged@3": "needs `truth`",
        "serendipity@3": "needs `train`",
        "calibration@3": "`item_vectors`",
    }.items():
        with pytest.raises(tr.InputError, match=words):
            tr.evaluate(lists, name)


def test_users_without_training_items_have_no_calibration() -> None:
    train = tr.Interactions.of([[0, 1], []], "train", n_items=N_ITEMS)
    cell = tr.evaluate(lists_of([[0, 1], [2, 3]]), "calibration@2", train=train, item_vectors=np.eye(N_ITEMS))
    assert cell["calibration@2"].mean == pytest.approx(0, abs=1e-15)
    assert cell["calibration@2"].n == 1
    with pytest.raises(tr.InputError, match="weights from 0"):
        tr.evaluate(lists_of([[0]]), "calibration@2", train=train, item_vectors=-np.eye(N_ITEMS))


def test_empty_lists_are_undefined_and_counted() -> None:
    data = tr.Interactions.of([[0, 1], [0]], "train", n_items=N_ITEMS)
    cell = tr.evaluate(lists_of([[0, 1], []]), "popularity@4", train=data)["popularity@4"]
    assert (cell.mean, cell.n, cell.n_undefined) == (1.5, 1, 1)


def test_without_any_items_only_the_coverage_is_defined() -> None:
    table = tr.evaluate(lists_of([[], []]), ["coverage@2", "gini@2", "entropy@2"])
    assert [cell.mean for cell in table.estimates] == pytest.approx([0.0, math.nan, math.nan], nan_ok=True)


def test_a_tail_of_equally_popular_items_has_the_higher_numbers() -> None:
    assert TailShare(10, 0.5).tail(np.array([1, 1, 1, 1])).tolist() == [False, False, True, True]
    assert TailShare(10, 0.2).tail(np.array([1, 5, 0, 2])).tolist() == [True, False, True, False]


@given(rows=rows_of_items, cut=st.integers(0, 8))
def test_counts_merge(rows: list[list[int]], cut: int) -> None:
    first, second, both = lists_of(rows[:cut]), lists_of(rows[cut:]), lists_of(rows)
    for name in ("coverage@3", "gini@3", "entropy@3"):
        metric = LIST_METRICS.read(name)
        assert isinstance(metric, CountMetric)
        merged = metric.of_counts((first.counts(3) + second.counts(3)).astype(float))
        assert merged == metric.of_counts(both.counts(3).astype(float))


def test_means_over_batches_would_be_wrong_and_are_refused() -> None:
    table = tr.evaluate(lists_of([[0, 1], [1, 2]]), ["coverage@2", "entropy@2"])
    with pytest.raises(tr.InputError, match=r"coverage@2 is not a mean over users, so it can't be added: join"):
        _ = table["coverage@2"] + table["coverage@2"]


def test_the_error_of_the_personalisation_is_that_of_the_jackknife() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.permutation(N_ITEMS)[: 1 + user % 4].tolist() for user in range(30)]
    without = [slow_personalisation(rows[:user] + rows[user + 1 :]) for user in range(30)]
    expected = math.sqrt(29 / 30 * np.square(np.array(without) - np.mean(without)).sum())
    found = tr.evaluate(lists_of(rows), "personalisation@4")["personalisation@4"]
    assert found.standard_error == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [7, 2 * GROUPS + 13])
@pytest.mark.parametrize("name", ["coverage@4", "gini@4", "entropy@4"])
def test_errors_are_those_of_the_jackknife(n: int, name: str) -> None:
    rng = np.random.default_rng(n)
    rows = [rng.permutation(N_ITEMS)[:4].tolist() for _ in range(n)]
    groups = min(n, GROUPS)
    slow = SLOW[name.partition("@")[0]]
    without = [slow([row for at, row in enumerate(rows) if at % groups != group]) for group in range(groups)]
    expected = math.sqrt((groups - 1) / groups * np.square(np.array(without) - np.mean(without)).sum())
    assert tr.evaluate(lists_of(rows), name)[name].standard_error == pytest.approx(expected, rel=1e-9)


def test_counts_are_taken_some_groups_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    lists = lists_of([rng.permutation(N_ITEMS)[:4].tolist() for _ in range(50)])
    metric = LIST_METRICS.read("gini@4")
    expected = metric.measure(lists, Surroundings())
    monkeypatch.setattr("truerank.recommending.list_metrics._AT_ONCE", 5 * N_ITEMS)
    assert metric.measure(lists, Surroundings()) == expected


@pytest.mark.parametrize("name", ["coverage@5", "gini@5", "entropy@5"])
def test_intervals_cover_what_other_users_would_give(name: str) -> None:
    """Of 200 samples of users, at least 186 (the 1 % point of a 95 % interval) must cover the mean of all samples."""
    rng = np.random.default_rng(6)
    taste = 1 / np.arange(1, 301) ** 1.1
    metric = LIST_METRICS.read(name)
    found = []
    for _ in range(200):
        keys = np.log(rng.random((150, 300))) / taste  # weighted draws without replacement
        rows = np.argsort(-keys, axis=1)[:, :5]
        lists = tr.Recommendations(rows.ravel(), np.arange(151) * 5, np.arange(150), np.arange(300), 5)
        found.append(metric.measure(lists, Surroundings()))
    target = np.mean([each.value for each in found])
    assert sum(abs(each.value - target) < 1.976 * each.standard_error for each in found) >= 182


def test_overlap_is_with_the_first_recommender_by_name() -> None:
    one = tr.read_recommendations({"ann": ["a", "b"], "bob": ["b", "c"], "eve": ["a", "c"]})
    other = tr.read_recommendations({"bob": ["c", "b"], "ann": ["x", "a"]})
    table = tr.evaluate({"one": one, "other": other}, ["overlap@2", "overlap@1"])
    assert table["one", "overlap@2"].mean == 1
    assert table["other", "overlap@2"].mean == 0.75
    assert table["other", "overlap@1"].mean == 0
    assert "overlap@2 is the overlap with the lists of 'one'" in table.notes
    back = tr.evaluate({"other": other, "one": one}, "overlap@2")["one", "overlap@2"]
    assert (back.mean, back.n, back.n_undefined) == (0.75, 2, 1)
    short = tr.read_recommendations({"ann": ["a"], "bob": ["c"]}, k=2)
    assert tr.evaluate({"one": one, "short": short}, "overlap@2")["short", "overlap@2"].mean == 0.5
    with pytest.raises(tr.InputError, match="overlap@2 needs lists of at least two recommenders"):
        tr.evaluate(one, "overlap@2")


def slow_rbo(one: list[int], other: list[int], p: float) -> float:
    """Agreement at each depth of the shorter list, by the weights of the article; the last one holds beyond."""
    shares = [len({*one[:depth]} & {*other[:depth]}) / depth for depth in range(1, min(len(one), len(other)) + 1)]
    return sum((1 - p) * p**at * share for at, share in enumerate(shares)) + p ** len(shares) * shares[-1]


@given(rows_of_items, rows_of_items, st.sampled_from([0.2, 0.9]), st.integers(1, 4))
def test_rank_biased_overlap(one: list[list[int]], other: list[list[int]], p: float, k: int) -> None:
    other[0] = other[0][:2]
    both = list(zip(one, other, strict=False))
    table = tr.evaluate({"one": lists_of(one), "other": lists_of(other)}, f"rbo({p})@{k}")
    found = table["other", f"rbo({p})@{k}"]
    assert found.mean == pytest.approx(np.mean([slow_rbo(a[:k], b[:k], p) for a, b in both]), abs=1e-12)
    assert found.n == len(both)


def test_rank_biased_overlap_of_lists_that_are_equal_or_share_nothing() -> None:
    lists = {"one": lists_of([[0, 1, 2]]), "same": lists_of([[0, 1, 2]]), "others": lists_of([[3, 4, 5]])}
    table = tr.evaluate(lists, "rbo@3")
    assert [table[name, "rbo@3"].mean for name in lists] == pytest.approx([1.0, 1.0, 0.0], abs=1e-15)
    assert "rbo@3 is the overlap with the lists of 'one'" in table.notes
    with pytest.raises(tr.InputError, match=r"the p of rbo\(p\)@k must lie between 0 and 1, got 1"):
        tr.evaluate(lists, "rbo(1)@3")


def test_items_are_matched_with_the_training_items_by_name() -> None:
    train = tr.read_interactions({"ann": ["c", "b"], "bob": ["c"], "eve": ["c", "b", "a"]})
    lists = tr.read_recommendations({"ann": ["a", "new"], "bob": ["b", "c"]})
    table = tr.evaluate(lists, ["popularity@2", "novelty@2"], train=train)
    assert table["popularity@2"].mean == pytest.approx((0.5 + 2.5) / 2)
    assert "novelty@2: 1 recommended items have no training user and count as if they had one" in table.notes
    with pytest.raises(tr.InputError, match="no listed item is in `train`: the ids do not match"):
        tr.evaluate(tr.read_recommendations({"ann": ["x"]}), "popularity@1", train=train)


def test_lists_and_their_hits_in_one_table() -> None:
    lists = tr.recommend(np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]), k=2)
    truth = tr.Interactions.of([[1], [0]], "truth", n_items=3)
    table = tr.evaluate({"A": lists, "B": lists}, ["coverage@2", "rr@2", "gini@1"], truth=truth)
    assert table.metrics == ("coverage@2", "rr@2", "gini@1")
    assert [cell.mean for cell in table.estimates[:3]] == pytest.approx([1.0, 0.25, 1 / 3])
    assert table.estimates[:3] == table.estimates[3:]
    assert table["B", "rr@2"].mean == 0.25
    many = tr.Interactions.of([[0, 1, 2], [0, 1]], "truth", n_items=3)
    (cell,) = tr.evaluate(lists, "recall@2", truth=many, convention="lenskit").estimates
    assert cell == tr.evaluate(tr.read_lists(lists, many), "recall@2", convention="lenskit")["recall@2"]
    assert cell.mean != tr.evaluate(lists, "recall@2", truth=many)["recall@2"].mean
    with pytest.raises(tr.InputError, match="rr@2 compares lists with relevant items: give these as `truth`"):
        tr.evaluate(lists, "rr@2")
    with pytest.raises(tr.InputError, match="recall@3 looks at rank 3, but these ranks are cut at depth 2"):
        tr.evaluate(lists, "recall@3", truth=truth)
    with pytest.raises(tr.InputError, match="lists and ranks can't be in one table"):
        tr.evaluate({"A": lists, "B": tr.Ranks.from_ranks([1], n=3)}, "rr@2", truth=truth)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("coverage", "coverage needs a cut-off"),
        ("coverage@5", "these lists are cut at 4 items, so their first 5 are not known"),
        ("novelty@2", "novelty@2 needs `train`, the training interactions"),
        ("ild@2", "intra-list-distance@2 needs `item_vectors`"),
        ("tail-share(1.5)@2", "the share of tail-share must lie between 0 and 1, got 1.5"),
        ("coverige@2", "unknown metric 'coverige@2'"),
    ],
)
def test_what_is_missing_is_said(metric: str, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.evaluate(lists_of([[0, 1]]), metric, truth={0: [1]})


def test_training_items_may_be_plain_lists() -> None:
    assert tr.evaluate(lists_of([[0, 11]]), "popularity@2", train=[[0, 11], [0]])["popularity@2"].mean == 1.5
    with pytest.raises(tr.InputError, match="at least one recommender and one metric"):
        tr.evaluate(lists_of([[0, 1]]), [])


def test_vectors_must_fit() -> None:
    with pytest.raises(tr.InputError, match=r"must have a row for each of 12 items, got shape \(3, 2\)"):
        tr.evaluate(lists_of([[0, 1]]), "ild@2", item_vectors=np.ones((3, 2)))
    vectors = np.ones((N_ITEMS, 2))
    vectors[[1, 7]] = 0
    with pytest.raises(tr.InputError, match="must be finite and not 0, but that of item 1 is not"):
        tr.evaluate(lists_of([[0, 1]]), "ild@2", item_vectors=vectors)
    assert tr.evaluate(lists_of([[0, 2]]), "ild@2", item_vectors=vectors)["ild@2"].mean == pytest.approx(0)


def test_ranks_do_not_have_them() -> None:
    assert sorted(METRICS.elsewhere) == LIST_METRICS.names
    with pytest.raises(tr.InputError, match=r"'coverage@10' is a metric of recommended lists, not of ranks"):
        tr.evaluate(tr.Ranks.from_ranks([1], n=5), "coverage@10")


@pytest.mark.parametrize(
    ("text", "name"),
    [("ILD@10", "intra-list-distance@10"), ("ARP@5", "popularity@5"), ("tail_share(0.5)@3", "tail-share(0.5)@3")],
)
def test_other_names_and_columns(text: str, name: str) -> None:
    assert str(LIST_METRICS.read(text)) == name


def test_groups_are_the_metrics_of_their_users() -> None:
    """Against the lists and relevant items of the users of a group, taken by hand."""
    rng = np.random.default_rng(3)
    rows = {f"u{user}": [f"i{item}" for item in rng.permutation(N_ITEMS)[:4]] for user in range(30)}
    truth = {user: [f"i{item}" for item in rng.permutation(N_ITEMS)[:2]] for user in rows}
    names = {user: ("few", "many")[place % 2] for place, user in enumerate(rows) if place < 26}
    metrics = ["coverage@4", "popularity@3", "recall@4", "overlap@2"]

    def table(chosen: list[str], by: dict[str, str] | None = None) -> tr.Evaluation:
        lists = tr.read_recommendations({user: rows[user] for user in chosen}, items)
        first = tr.read_recommendations({user: rows[user][::-1] for user in rows}, items)
        named = {"first": first, "other": lists}
        return tr.evaluate(named, metrics, train=items, truth={user: truth[user] for user in chosen}, by=by)

    items = tr.read_interactions({"x": [f"i{item}" for item in range(N_ITEMS)], "y": ["i0", "i1"]})
    whole = table(list(rows), names)
    assert whole.groups == ("few", "many", "unknown")
    for group in whole.groups:
        alone = table([user for user in rows if names.get(user, "unknown") == group])
        for metric in metrics:
            assert whole["other", metric, group] == alone["other", metric]
    assert "unknown: only 4 instances: expect a wide interval" in whole.notes


def test_a_group_may_lack_lists_or_relevant_items() -> None:
    lists = tr.read_recommendations({"ann": ["a", "b"], "bob": ["b", "a"]})
    groups = {"ann": "listed", "bob": "both", "eve": "relevant"}
    table = tr.evaluate(lists, ["coverage@2", "rr@2"], truth={"bob": ["b"], "eve": ["a"]}, by=groups)
    assert table.groups == ("listed", "both", "relevant")
    assert [table["rr@2", group].mean for group in table.groups] == pytest.approx([math.nan, 1.0, 0.0], nan_ok=True)
    assert [table["coverage@2", group].n for group in table.groups] == [1, 1, 0]
    with pytest.raises(tr.InputError, match="lists are shown by groups of users, but `by` has groups of items"):
        tr.evaluate(lists, "coverage@2", by=tr.by_popularity(tr.read_split({"ann": ["a"]}, {"ann": ["b"]})))
    with pytest.raises(tr.InputError, match="give either `by` or `convention`, not both"):
        tr.evaluate(lists, "rr@2", truth={"bob": ["b"]}, by=groups, convention="ranx")


def test_items_of_train_belong_to_the_catalogue() -> None:
    """Lists that were read hold the listed items only, of which all are recommended."""
    lists = tr.read_recommendations({"ann": ["a", "b"], "bob": ["b", "c"]})
    train = tr.read_interactions({"ann": list("abcdefgh"), "bob": ["x", "y"]})
    inside = tr.read_recommendations({"ann": ["a", "b"], "bob": ["b", "c"]}, train)
    for metric in ("coverage@2", "gini@2", "entropy@2"):
        found, known = tr.evaluate(lists, metric, train=train), tr.evaluate(inside, metric)
        assert found["recommender", metric].mean == pytest.approx(known["recommender", metric].mean, rel=1e-12)
        error = known["recommender", metric].standard_error
        assert found["recommender", metric].standard_error == pytest.approx(error, rel=1e-12)
        assert found.notes == known.notes
    assert tr.evaluate(lists, "coverage@2", train=train)["recommender", "coverage@2"].mean == 3 / 10
    assert tr.evaluate(lists, "coverage@2")["recommender", "coverage@2"].mean == 1.0
    more = tr.read_interactions({"ann": ["b", "z"]})
    assert tr.evaluate(inside, "coverage@2", train=more)["recommender", "coverage@2"].mean == 3 / 11


@pytest.mark.parametrize(("name", "value"), [("train", [[0]]), ("item_vectors", np.eye(2)), ("truth", {"ann": ["a"]})])
def test_ranks_refuse_what_only_lists_use(name: str, value: Any) -> None:
    with pytest.raises(tr.InputError, match=f"`{name}` is for recommended lists, but these are ranks"):
        tr.evaluate(tr.Ranks.from_ranks([1, 2], n=9), "ap", **{name: value})


def test_a_metric_under_two_names_is_shown_once() -> None:
    table = tr.evaluate(lists_of([[0, 1], [2, 3]]), ["coverage@2", "hr@2", "hit_rate@2", "coverage@2"], truth={0: [1]})
    assert table.metrics == ("coverage@2", "hr@2")
