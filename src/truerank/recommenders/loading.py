"""Read saved models of any recommender."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from truerank.errors import InputError
from truerank.recommenders import files
from truerank.recommenders.ease import EASE
from truerank.recommenders.ials import IALS
from truerank.recommenders.itemknn import ItemKNN
from truerank.recommenders.models import FactorModel, SimilarityModel
from truerank.recommenders.popularity import Popularity

RECOMMENDERS: dict[str, Any] = {kind.__name__: kind for kind in (EASE, IALS, ItemKNN, Popularity)}


def load_model(path: str | Path) -> FactorModel | SimilarityModel:
    """Return the model that `save` wrote, with the settings of its recommender and the names of users and items.

    Examples
    --------
    >>> import tempfile
    >>> import truerank as tr
    >>> path = tempfile.mkdtemp() + "/model.npz"
    >>> tr.Popularity().fit([[0, 1], [1]]).save(path)
    >>> tr.load_model(path)
    FactorModel(2 users, 2 items, by Popularity())
    """
    about, arrays = files.read(path)
    if (kind := RECOMMENDERS.get(about["recommender"])) is None:
        choices = ", ".join(sorted(RECOMMENDERS))
        raise InputError(f"{str(path)!r} holds a model of {about['recommender']!r}; choose from {choices}.")
    try:
        recommender = kind(**about["settings"])
    except TypeError as error:
        raise InputError(f"{str(path)!r} was not written by a model's `save`: {error}.") from error
    names = {"user_ids": arrays.get("user_ids"), "item_ids": arrays.get("item_ids")}
    if {"user_factors", "item_factors"} <= arrays.keys():
        return FactorModel(arrays["user_factors"], arrays["item_factors"], recommender=recommender, **names)
    matrices = (files.unpack(name, arrays) for name in ("similarity", "history"))
    return SimilarityModel(*matrices, recommender=recommender, **names)
