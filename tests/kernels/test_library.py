"""The library as a whole: the contract of its functions, its variants, and what happens without it."""

import ctypes
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import truerank as tr
from tests.instances import sparse
from truerank.kernels import factors as factor_loops
from truerank.kernels import library
from truerank.kernels.factors import FactorSamples, best_factors, count_factors, count_sampled, score_pairs
from truerank.kernels.histories import best_histories, count_histories, score_histories
from truerank.kernels.scores import best_scores, count_scores
from truerank.kernels.user_blocks import Lists
from truerank.sampling.pools import Pool

HEADER = Path(library.__file__).with_name("kernels.h").read_text()
COUNTING = ["count_factors_float32", "count_factors_float64", "count_narrow", "count_scores_float64"]
STRUCTURES = [
    library.MatrixArgument,
    library.ListsArgument,
    library.BlockArgument,
    library.RowsArgument,
    library.HistoriesArgument,
    library.OrderedArgument,
    library.BestArgument,
    library.DrawsArgument,
]


def words(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def prototypes() -> dict[str, list[str]]:
    """Return the arguments of each function that the header exports."""
    found = re.findall(r"EXPORT int64_t (\w+)\(([^)]*)\);", words(HEADER))
    return {name: [part.strip() for part in given.split(",") if part.strip() != "void"] for name, given in found}


def is_same(declared: Any, written: str) -> bool:
    """Whether an argument's type in Python is the one in the header."""
    if declared is ctypes.c_int64:
        return bool(re.fullmatch(r"int64_t \w+", written))
    if isinstance(declared, library.Array):
        kinds = {
            "float32": "float *",
            "float64": "double *",
            "int16": "int16_t *",
            "int32": "int32_t *",
            "int64": "int64_t *",
        }
        return kinds[str(declared.kind)] in written
    structure = declared.structure if isinstance(declared, library.Typed) else declared._type_
    return bool(re.fullmatch(rf"(const )?{name_of(structure)} \*\w+", written))


def name_of(structure: Any) -> str:
    """Return what the header calls a structure."""
    return str(structure.__name__).removesuffix("Argument")


def test_python_declares_what_the_header_says() -> None:
    assert set(prototypes()) == set(library.ENTRIES)
    for name, arguments in prototypes().items():
        declared = library.ENTRIES[name]
        assert len(declared) == len(arguments), name
        assert all(map(is_same, declared, arguments)), name


@pytest.mark.parametrize("structure", STRUCTURES)
def test_structures_have_the_fields_of_the_header(structure: Any) -> None:
    body = re.search(rf"typedef struct {{([^}}]*)}} {name_of(structure)};", words(HEADER))
    assert body is not None
    fields = [
        (name.strip(" *\n"), "*" in name or "*" in kind, kind)
        for kind, names in re.findall(r"((?:const )?\w+)\s+([^;]+);", body[1])
        for name in names.split(",")
    ]
    assert [name for name, _ in structure._fields_] == [name for name, _, _ in fields]
    for (_, declared), (name, points, kind) in zip(structure._fields_, fields, strict=True):
        plain = {"int64_t": ctypes.c_int64, "Lists": library.ListsArgument, "Rows": library.RowsArgument}.get(kind)
        assert declared is (ctypes.c_void_p if points else plain), name


def results() -> dict[str, Any]:
    """Return what every loop gives for numbers whose sums depend on the order of addition, with many ties."""
    rng = np.random.default_rng(0)
    train, test = (sparse(rng, 80, 5000, density) for density in (0.01, 0.002))
    lists = [Lists(part.indptr, part.sorted_indices().indices) for part in (train, test)]
    found: dict[str, Any] = {}
    number: Any
    for number in (np.float32, np.float64):
        users, items = (rng.standard_normal((n, 21)).astype(number) for n in (80, 5000))
        items[::3] = items[0]
        scores = users @ items.T
        histories, similarity = train.astype(number), (items[:2500] @ items.T)[:, :300]
        histories = sp.csr_array(histories[:, :2500])
        name = np.dtype(number).name
        found[f"factors {name}"] = count_factors(users, items, *lists, item_bias=items[:, 0])
        found[f"top {name}"] = count_factors(users, items, *lists, item_bias=items[:, 0], depth=7)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(factor_loops, "COLUMNS_FOR_INT16", 1)
            patch.setattr(factor_loops, "WORK_FOR_INT16", 0)
            found[f"whole numbers {name}"] = count_factors(users, items, *lists, item_bias=items[:, 0])
            apart = items * np.linspace(1, 2, 5000, dtype=number)[:, None]  # no ties
            found[f"sieve {name}"] = count_factors(users, apart, *lists, depth=7)
            found[f"best sieve {name}"] = best_factors(users, apart, np.arange(80), lists[0], 30)
        found[f"scores {name}"] = count_scores(scores.__getitem__, 5000, *lists)
        everyone = np.arange(80)
        found[f"best factors {name}"] = best_factors(users, items, everyone, lists[0], 30, item_bias=items[:, 0])
        found[f"best scores {name}"] = best_scores(scores.__getitem__, 5000, everyone, lists[0], 30)
        pairs = score_pairs(users, items, np.repeat(everyone, 50), np.arange(4000), item_bias=items[:, 0])
        bounds = np.arange(81)
        found[f"pairs {name}"] = (pairs,)
        found[f"sampled {name}"] = count_sampled(pairs[::10].copy(), bounds * 5, pairs, bounds * 50)
        samples = FactorSamples.of(users, items, items[:, 0], n_pairs=5000 * 8)
        assert samples is not None
        found[f"among {name}"] = samples.counts(everyone, lists[1], Lists(bounds * 50, np.arange(4000)))
        found[f"dense {name}"] = (score_histories(histories, similarity),)
        found[f"sparse {name}"] = (score_histories(histories, sp.csr_array(similarity)),)
        square = sparse(rng, 5000, 5000, density=0.002).astype(number)
        found[f"counts sparse {name}"] = count_histories(train.astype(number), square, *lists)
        found[f"best sparse {name}"] = best_histories(train.astype(number), square, everyone, lists[0], 30)
    pool = Pool(5000, [train.indices[slice(*span)] for span in pairwise(train.indptr)])
    for m in (60, 600):
        found[f"{m} draws"] = (pool.distinct(np.arange(80), np.full(80, m), np.random.default_rng(1)).items,)
    for factors in (19, 70):
        ials = tr.IALS(factors=factors, rng=0, sweeps=2).fit(train, threads=1)
        found[f"ials {factors}"] = (ials.user_factors, ials.item_factors)
    found["ease"] = (tr.EASE(2.0).fit(sp.csr_array(train[:, :100]), threads=1).similarity,)
    return found


@pytest.mark.parametrize("name", library.runnable())
def test_every_variant_gives_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, variant = results(), library.load_variant(name)
    monkeypatch.setattr(library, "load", lambda: variant)
    for loop, arrays in results().items():
        for found, right in zip(arrays, expected[loop], strict=True):
            np.testing.assert_array_equal(found, right, err_msg=loop)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return `library.load` as in a new process in which TRUERANK_LOOPS is not set."""
    monkeypatch.delenv(library.LOOPS_VARIABLE, raising=False)
    monkeypatch.setattr(library, "load", cache(library.load.__wrapped__))
    return library.load


def test_the_best_variant_is_loaded(load: Any) -> None:
    levels = {"x86-64": 1, "x86-64-v3": 3, "x86-64-v4-vnni": 4, "arm64": 0, "native": 0}
    assert load().processor_level() in (0, 1, 3, 4)
    assert max(library.runnable(), key=levels.__getitem__) == library.variant()


@pytest.mark.parametrize("name", library.runnable())
def test_the_environment_chooses_a_variant(name: str, load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUERANK_LOOPS", name)
    assert Path(load()._name).name == f"kernels-{name}{library.SUFFIX}"
    assert library.variant() == name


def test_the_environment_chooses_numpy(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUERANK_LOOPS", "numpy")
    assert load() is None
    assert library.variant() == "numpy"
    assert tr.rank(np.array([[1.0, 3.0, 2.0]]), test=[[2]]).above.tolist() == [1]


def test_loops_that_this_computer_lacks_are_refused(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = ", ".join([*library.runnable(), "numpy"])
    monkeypatch.setenv("TRUERANK_LOOPS", "avx")
    with pytest.raises(tr.InputError, match=f"^TRUERANK_LOOPS must be one of {here}, got 'avx'.$"):
        tr.rank(np.ones((1, 2)), test=[[0]])
    missing = "x86-64" if "arm64" in library.runnable() else "arm64"
    monkeypatch.setenv("TRUERANK_LOOPS", missing)
    with pytest.raises(tr.InputError, match=f"TRUERANK_LOOPS is {missing}, which this computer can't run; .* {here}.$"):
        tr.rank(np.ones((1, 2)), test=[[0]])


def test_without_a_library_numpy_counts_after_one_warning(
    load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factors = tr.Factors(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 3.0]]))
    expected = tr.rank(factors, test=[[1]])
    (tmp_path / f"kernels-x86-64{library.SUFFIX}").write_text("this is no library")
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    load.cache_clear()
    with pytest.warns(RuntimeWarning, match="NumPy is used, which is several times slower") as warned:
        ranks = [tr.rank(factors, test=[[1]]) for _ in range(2)]
    assert len(warned) == 1
    assert [each.above.tolist() for each in ranks] == [expected.above.tolist()] * 2


def test_arrays_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError, match="contiguous array of int32, got int64"):
        library.address(np.zeros(3, np.int64), np.int32)
    with pytest.raises(TypeError, match="contiguous array of int64"):
        library.address(np.zeros(6, np.int64)[::2], np.int64)
    with pytest.raises(ctypes.ArgumentError):
        library.call("invert_block", np.zeros((64, 64), np.float32))


SPANS = {
    "begins before the start": ([-1, 0], [1, 2]),
    "ends after the end": ([0, 1], [1, 4]),
    "ends before it begins": ([0, 3], [1, 2]),
    "far away": ([0, 2**62], [1, 2**62 + 1]),
}


@pytest.mark.parametrize("wrong", SPANS)
@pytest.mark.parametrize(
    "entry", ["count_factors_float32", "count_factors_float64", "count_narrow", "count_scores_float64"]
)
@pytest.mark.parametrize("which", ["train", "test"])
def test_spans_outside_a_list_are_refused_by_the_loops(wrong: str, entry: str, which: str) -> None:
    number = np.float32 if entry.endswith("32") else np.float64
    items, good = np.arange(3, dtype=np.int32), ([0, 1], [1, 2])
    spans = {name: [np.array(side) for side in (SPANS[wrong] if name == which else good)] for name in ("train", "test")}
    lists = [library.ListsArgument.of(items, begin, end, begin.copy()) for begin, end in spans.values()]
    outputs = [np.zeros(3, kind) for kind in (number, np.int64, np.bool_, np.int64, np.int64)]
    block = library.BlockArgument(2, *lists, *(each.ctypes.data for each in outputs))
    matrix = library.MatrixArgument.of(np.ones((3, 3), number))
    arguments = (matrix, block) if "scores" in entry else (matrix, matrix, None, block, 0, 3)
    with pytest.raises(ValueError, match="not within their arrays"):
        library.call(entry, *arguments)


@pytest.mark.parametrize("item", [-1, 3, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("entry", ["count_factors_float32", "count_narrow", "count_scores_float32"])
def test_held_out_items_outside_the_catalogue_are_refused_by_the_loops(item: int, entry: str) -> None:
    number = np.float64 if entry == "count_narrow" else np.float32
    nothing, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    lists = [
        library.ListsArgument.of(np.zeros(0, np.int32), nothing, nothing, nothing.copy()),
        library.ListsArgument.of(np.array([item], np.int32), nothing, one, nothing.copy()),
    ]
    outputs = [np.zeros(1, kind) for kind in (number, np.int64, np.bool_, np.int64, np.int64)]
    block = library.BlockArgument(1, *lists, *(each.ctypes.data for each in outputs))
    matrix = library.MatrixArgument.of(np.ones((3, 3), number))
    arguments = (matrix, block) if "scores" in entry else (matrix, matrix, None, block, 0, 3)
    with pytest.raises(ValueError, match="not within their arrays"):
        library.call(entry, *arguments)


@pytest.mark.parametrize("pair", [(-1, 0), (3, 0), (0, -1), (0, 5), (2**62, 0), (0, -(2**62))])
def test_pairs_outside_the_factors_are_refused_by_the_loop(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not within their arrays"):
        score_pairs(np.ones((3, 2)), np.ones((5, 2)), np.array([0, pair[0]]), np.array([0, pair[1]]))


DRAWN: dict[str, Any] = {
    "an excluded item outside": {"excluded": [7]},
    "a negative item": {"excluded": [-1]},
    "items that do not ascend": {"taken": [5, 3]},
    "more draws than items": {"size": 6},
    "fewer than no draws": {"size": -1},
    "a list that ends too late": {"end": 3},
    "a list that begins too early": {"begin": -1},
}


@pytest.mark.parametrize("way", [0, 1, 2])
@pytest.mark.parametrize("wrong", [None, *DRAWN])
def test_draws_that_do_not_fit_are_refused_by_the_loop(wrong: str | None, way: int) -> None:
    given: dict[str, Any] = {"excluded": [3], "taken": [5], "size": 5, "begin": 0, "end": None}
    given |= DRAWN[wrong] if wrong else {}
    lists = []
    for name in ("excluded", "taken"):
        items, begin = np.array(given[name], np.int32), np.array([given["begin"]])
        end = np.array([len(items) if given["end"] is None else given["end"]])
        lists.append(library.ListsArgument.of(items, begin, end, begin.copy()))
    items = np.zeros(20, np.int32)
    size = given["size"] if way < 2 or given["size"] < 6 else -1  # with repetition there can be any number
    draws = library.DrawsArgument.of(7, way, np.ones(1, np.uint64), np.array([size]))
    if wrong is None:
        library.call("draw_items", draws, *lists, items)
        assert set(items[:5].tolist()) <= {0, 1, 2, 4, 6}
        return
    with pytest.raises(ValueError, match="not within their arrays"):
        library.call("draw_items", draws, *lists, items)


def test_numbers_of_another_type_are_refused() -> None:
    """Read as numbers of the type of the loop, they would be others, and reach beyond their array."""
    block = library.BlockArgument()
    for entry, kind in (("count_scores_float64", np.float32), ("count_scores_float32", np.int32)):
        with pytest.raises(ctypes.ArgumentError, match=f"needs a MatrixArgument of float.*, got {np.dtype(kind)}"):
            library.call(entry, library.MatrixArgument.of(np.ones((2, 2), kind)), block)
    histories = library.HistoriesArgument.of(np.array([0, 1]), np.array([0]), np.ones(1, np.float32))
    with pytest.raises(
        ctypes.ArgumentError, match=r"a compiled loop needs a HistoriesArgument of float64, got float32"
    ):
        library.call("score_dense_float64", histories, library.MatrixArgument.of(np.ones((1, 1))), np.ones((1, 1)))
    with pytest.raises(TypeError, match="needs an array of two dimensions, got 1"):
        library.MatrixArgument.of(np.ones(3))


def test_types_end_in_those_of_the_entries() -> None:
    for entry, arguments in library.ENTRIES.items():
        if found := re.search(r"float(32|64)$", entry):
            assert {each.kind for each in arguments if isinstance(each, library.Typed)} <= {np.dtype(found[0])}


@pytest.mark.parametrize("columns", [[0, 5], [-1, 0], [0, 2**31 - 1]])
def test_entries_outside_the_factors_are_refused_by_least_squares(columns: list[int]) -> None:
    factors, square = np.ones((5, 16), np.float32), np.eye(16)
    rows = library.RowsArgument.of(np.array([0, 2]), np.array(columns))
    with pytest.raises(ValueError, match="not within their arrays"):
        library.call("solve_rows", rows, 0, 1, library.MatrixArgument.of(factors), square, np.ones(1), np.ones((1, 16)))


def test_short_arrays_are_refused() -> None:
    """The loops can't see how long arrays are, and would read and write beyond their ends."""
    matrix, long, short = library.MatrixArgument.of(np.ones((3, 2))), np.zeros(3, np.int64), np.zeros(2, np.int64)
    pairs: Any = {"bias": np.ones(3), "user_of": long, "item_of": long, "size": 3, "scores": np.ones(3)}
    library.call("score_pairs_float64", matrix, matrix, *pairs.values())
    for name in ("bias", "user_of", "item_of", "scores"):
        wrong = pairs | {name: pairs[name][:2]}
        with pytest.raises(ValueError, match="needs an array of at least 3 numbers or rows, got 2"):
            library.call("score_pairs_float64", matrix, matrix, *wrong.values())
    items = np.zeros(3, np.int32)
    for arrays in ((long, short, long), (long, long, short)):
        with pytest.raises(ValueError, match="at least 3"):
            library.ListsArgument.of(items, *arrays)
    lists, seen = (items, long, long, long), np.zeros(3, np.bool_)
    library.BlockArgument.of(lists, lists, np.ones(3), long, seen, long, long)
    for place in range(5):
        results: Any = [np.ones(3), long, seen, long, long]
        results[place] = results[place][:2]
        with pytest.raises(ValueError, match="at least 3"):
            library.BlockArgument.of(lists, lists, *results)
    few = (items, short, short, short)
    with pytest.raises(ValueError, match="at least 3"):
        library.BlockArgument.of(few, lists, *(np.ones(3), long, seen, long, long))
    with pytest.raises(ValueError, match="at least 3"):
        library.BestArgument.of(few, np.zeros((3, 1), np.int32), np.ones((3, 1)), long)
    with pytest.raises(ValueError, match="at least 3"):
        library.DrawsArgument.of(9, 0, np.ones(2, np.uint64), long)
    with pytest.raises(ValueError, match="at least 2"):
        library.HistoriesArgument.of(np.array([0, 2]), np.array([0, 1]), np.ones(1))


def test_all_entries_with_arrays_say_how_long_these_must_be() -> None:
    for entry, arguments in library.ENTRIES.items():
        if any(isinstance(each, library.Array) for each in arguments):
            assert re.sub(r"_float(32|64)$", "", entry) in library.LENGTHS
