"""What all recommenders share: settings, trained models, their files; and the simplest one, popularity."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from truerank.core.checks import AnyArray, Floats, InputError, as_number, as_path
from truerank.core.matrices import Matrix
from truerank.core.threads import check_threads
from truerank.data.interactions import Interactions, PerUser
from truerank.formats import writing
from truerank.scoring.scorers import ArrayScorer, Factors, Similarity

_PARTS = ("data", "indices", "indptr", "shape")


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the name and the settings of the recommender as a dict, and the arrays."""
    from truerank.formats.sources import load_arrays

    arrays = load_arrays(path)
    try:
        about = json.loads(str(arrays.pop("about", "")))
    except (ValueError, RecursionError):
        about = None
    kinds = {"recommender": str, "settings": dict}
    if not isinstance(about, dict) or not all(isinstance(about.get(name), kind) for name, kind in kinds.items()):
        raise InputError(f"{str(path)!r} was not written by a model's `save`.")
    return about, arrays


def _pack(name: str, matrix: Matrix) -> dict[str, AnyArray]:
    """Return a dense or sparse matrix as arrays to write."""
    if not sp.issparse(matrix):
        return {name: matrix}
    return {f"{name}_{part}": np.asarray(getattr(matrix, part)) for part in _PARTS}


def _unpack(name: str, arrays: dict[str, AnyArray]) -> Matrix:
    """Return what `_pack` packed, or raise `InputError` if it is inconsistent."""
    if name in arrays:
        return arrays[name]
    try:
        data, indices, indptr, shape = (arrays[f"{name}_{part}"] for part in _PARTS)
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the model file is damaged: its {name} is not a valid matrix ({error}).") from error
    return matrix


def _plain(value: Any) -> Any:
    """Return a setting for JSON; a random generator is left out, because its state has changed since."""
    if isinstance(value, np.generic):
        return value.item()
    return None if isinstance(value, np.random.Generator) else value


Model = TypeVar("Model", "FactorModel", "SimilarityModel")


class Recommender(ABC, Generic[Model]):
    """The settings of a recommender: a frozen value that training does not change."""

    def fit(self, train: PerUser, *, threads: int | None = None, progress: bool = False) -> Model:
        """Return the model trained on the given interactions.

        Parameters
        ----------
        train : Interactions, sparse matrix, or list of item numbers per user
            A stored entry is an interaction, whatever its value.
        threads : int, optional
            One per processor by default. The model does not depend on it.
        progress : bool
            Whether to show a progress bar, on a terminal only.

        Returns
        -------
        FactorModel or SimilarityModel
            A scorer for `rank`, with the names of the users and items of `train`. It can be saved.
        """
        workers = check_threads(threads)
        given = Interactions.of(train, "train")
        if given.matrix.nnz == 0:
            raise InputError("`train` must hold at least one interaction, got none.")
        ones = sp.csr_array((np.ones(given.matrix.nnz), given.matrix.indices, given.matrix.indptr), shape=given.shape)
        return self._learn(Interactions(ones, given.user_ids, given.item_ids), workers, progress)

    @abstractmethod
    def _learn(self, train: Interactions, threads: int, progress: bool) -> Model:
        """Learn from a matrix of ones with at least one entry."""


class _Learnt(ArrayScorer):
    """What models have besides their scores: the recommender that learnt them, and a file."""

    recommender: Recommender[Any] | None = None

    def learnt_by(self, recommender: Recommender[Any]) -> Self:
        """Record the recommender, and return the model."""
        self.recommender = recommender
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_users} users, {self.n_items} items, by {self.recommender!r})"

    def save(self, path: str | Path) -> None:
        """Write to an `.npz` file, which `load_model` reads."""
        writing.check_writable(path, (".npz",))
        recommender: Any = self.recommender
        settings = {name: _plain(value) for name, value in asdict(recommender).items()}
        about = {"truerank": version("truerank"), "recommender": type(recommender).__name__, "settings": settings}
        names = {"user_ids": self.user_ids, "item_ids": self.item_ids}
        arrays = self._arrays() | {name: ids for name, ids in names.items() if ids is not None}
        with writing.replacing(path) as (file,):
            np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)

    @abstractmethod
    def _arrays(self) -> dict[str, AnyArray]:
        """Return what was learnt."""


class FactorModel(_Learnt, Factors):
    """Factors learnt by a recommender; scores are their inner products."""

    def _arrays(self) -> dict[str, AnyArray]:
        return {"user_factors": self.user_factors, "item_factors": self.item_factors}


class SimilarityModel(_Learnt, Similarity):
    """An item-item matrix learnt by a recommender, and the histories of the users it scores."""

    def _arrays(self) -> dict[str, AnyArray]:
        return _pack("similarity", self.similarity) | _pack("history", self.history)


def check_number(name: str, value: float, *, at_least: float | None = None, above: float | None = None) -> None:
    """Raise `InputError` unless a setting is a finite number within its bound."""
    if isinstance(value, bool) or not math.isfinite(as_number(value)):
        raise InputError(f"`{name}` must be a finite number, got {value!r}.")
    if at_least is not None and value < at_least:
        raise InputError(f"`{name}` must be at least {at_least}, got {value}.")
    if above is not None and value <= above:
        raise InputError(f"`{name}` must be above {above}, got {value}.")


def mirrored(matrix: Floats) -> Floats:
    """Return a symmetric matrix from its upper triangle."""
    upper = np.triu(matrix)
    return upper + np.triu(upper, 1).T


@dataclass(frozen=True)
class Popularity(Recommender[FactorModel]):
    """Scores an item by its number of users; a baseline that any recommender should beat.

    Examples
    --------
    >>> import numpy as np
    >>> import truerank as tr
    >>> tr.Popularity().fit([[0, 1], [1]]).scores(np.array([0])).tolist()
    [[1.0, 2.0]]
    """

    def _learn(self, train: Interactions, threads: int, progress: bool) -> FactorModel:
        counts = np.bincount(train.items, minlength=train.n_items).astype(np.float64)
        # as a single factor, which is 1 for each user: `rank` is fastest for factors
        users, items = np.ones((train.n_users, 1)), counts[:, np.newaxis]
        return FactorModel(users, items, user_ids=train.user_ids, item_ids=train.item_ids).learnt_by(self)


RECOMMENDERS = {"EASE": "item_models", "IALS": "ials", "ItemKNN": "item_models", "Popularity": "models"}
"""The module of each recommender that can be loaded."""


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
    about, arrays = _read(as_path(path))
    if (home := RECOMMENDERS.get(about["recommender"])) is None:
        choices = ", ".join(sorted(RECOMMENDERS))
        raise InputError(f"{str(path)!r} holds a model of {about['recommender']!r}; choose from {choices}.")
    try:
        recommender = getattr(import_module(f"truerank.recommenders.{home}"), about["recommender"])(**about["settings"])
    except TypeError as error:
        raise InputError(f"{str(path)!r} was not written by a model's `save`: {error}.") from error
    names = {"user_ids": arrays.get("user_ids"), "item_ids": arrays.get("item_ids")}
    if {"user_factors", "item_factors"} <= arrays.keys():
        return FactorModel(arrays["user_factors"], arrays["item_factors"], **names).learnt_by(recommender)
    similarity, history = (_unpack(name, arrays) for name in ("similarity", "history"))
    return SimilarityModel(similarity, history, **names).learnt_by(recommender)
