"""How the adapter of a model is found, and those of libraries that can't be installed beside the others.

The adapters of installed libraries are tested against them in tests/models.
"""

import subprocess
import sys
import types
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.arrays import AnyArray
from tests.pages import run_block
from truerank.scoring import conversion
from truerank.scoring.conversion import as_scorer

RNG = np.random.default_rng(0)
USERS, ITEMS, BIASES = (RNG.normal(size=size).astype(np.float32) for size in ((4, 3), (6, 3), 6))
TEST = [[0, 2], [1], [5], [3]]


def of_library(library: str, **attributes: Any) -> Any:
    """Return an object whose class is defined in a module of a library."""
    return type("Model", (), {"__module__": f"{library}.models.deep", **attributes})()


def test_an_adapter_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "ADAPTERS", dict(conversion.ADAPTERS))

    @tr.register_adapter("mylibrary")
    def adapt(model: Any, data: Any) -> tr.Scorer | None:
        return tr.Factors(model.p, model.q) if hasattr(model, "p") else None

    model = of_library("mylibrary", p=USERS, q=ITEMS)
    derived = type("Derived", (type(model),), {})()
    expected = tr.rank(tr.Factors(USERS, ITEMS), test=TEST)
    assert tr.rank(model, test=TEST) == tr.rank(derived, test=TEST) == expected
    with pytest.raises(tr.InputError, match="can't get scores from Model"):
        tr.rank(of_library("mylibrary"), test=TEST)


def test_what_a_model_says_of_itself_comes_first() -> None:
    scores = RNG.normal(size=(4, 6))
    model = of_library("implicit", user_factors=USERS, item_factors=ITEMS, scores=lambda self, users: scores[users])
    assert tr.rank(model, test=TEST) == tr.rank(scores, test=TEST)


def test_no_library_is_imported_unless_it_made_the_model() -> None:
    code = (
        "import sys, numpy as np, truerank as tr\n"
        "tr.rank(np.eye(3), test=[[0]]), tr.rank(lambda users: np.zeros((len(users), 3)), test=[[0]])\n"
        "print(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    libraries = {"cornac", "implicit", "lenskit", "lightfm", "pyspark", "recbole", "rectools", "torch"}
    assert libraries.isdisjoint(name.partition(".")[0] for name in done.stdout.split())


def lightfm() -> Any:
    """Return an object with the interface of LightFM 1.17, which no longer builds with current setuptools."""

    def users(self: Any, features: Any = None) -> tuple[AnyArray, AnyArray]:
        return np.arange(4, dtype=np.float32), USERS

    def items(self: Any, features: Any = None) -> tuple[AnyArray, AnyArray]:
        return BIASES, ITEMS

    return of_library("lightfm", get_user_representations=users, get_item_representations=items)


class Frame:
    """The interface of a Spark dataframe with the columns `id` and `features`."""

    def __init__(self, ids: AnyArray, features: AnyArray) -> None:
        self.rows = list(zip(ids.tolist(), features.tolist(), strict=True))

    def select(self, *columns: str) -> "Frame":
        assert columns == ("id", "features")
        return self

    def collect(self) -> list[tuple[int, list[float]]]:
        return self.rows


def spark(order: AnyArray) -> Any:
    """Return an object with the interface of Spark's ALSModel, with its items in this order."""
    frames = {"userFactors": Frame(np.arange(4), USERS), "itemFactors": Frame(order, ITEMS[order])}
    return of_library("pyspark", **frames)


def test_lightfm() -> None:
    expected = tr.rank(USERS @ ITEMS.T + BIASES, test=TEST)
    assert isinstance(as_scorer(lightfm()), tr.Factors)
    assert tr.rank(lightfm(), test=TEST).rank.tolist() == expected.rank.tolist()


def test_the_lightfm_example_of_the_documentation() -> None:
    train, test = (tr.Interactions.of(own, "events", n_items=6) for own in ([[3], [2], [1], [0]], TEST))
    split = tr.Split(train, test)
    names = {"tr": tr, "model": lightfm(), "split": split, "user_features": None, "item_features": None}
    run_block("models.md", "model.get_item_representations", names)
    assert names["ranks"] == tr.rank(lightfm(), split)


def test_lightfm_in_another_numbering() -> None:
    order = RNG.permutation(6)
    model = of_library(
        "lightfm",
        get_user_representations=lambda self: (np.zeros(4), USERS),
        get_item_representations=lambda self: (BIASES[order], ITEMS[order]),
    )
    named = tr.as_scorer(model, item_ids=order)
    assert tr.rank(named, test=TEST).rank.tolist() == tr.rank(lightfm(), test=TEST).rank.tolist()


def test_spark_in_any_order_of_its_rows() -> None:
    expected = tr.rank(tr.Factors(USERS, ITEMS), test=TEST)
    for order in (np.arange(6), RNG.permutation(6)):
        assert tr.rank(spark(order), test=TEST) == expected
    with pytest.raises(tr.InputError, match=r"`test` must hold items 0..4, got 0..5"):
        tr.rank(spark(np.arange(5)), test=TEST)


def test_names_for_any_model() -> None:
    order = RNG.permutation(6)
    model = types.SimpleNamespace(user_factors=USERS, item_factors=ITEMS[order])
    expected = tr.rank(tr.Factors(USERS, ITEMS), test=TEST)
    assert tr.rank(tr.as_scorer(model, item_ids=order), test=TEST) == expected
    assert tr.rank(tr.as_scorer(tr.as_scorer(model), item_ids=order), test=TEST) == expected
    with pytest.raises(tr.InputError, match=r"`item_ids` must have 6 entries, got shape \(5,\)"):
        tr.as_scorer(model, item_ids=order[:5])
