"""Recommenders before and after training: settings, and a model that can be ranked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray
from truerank.data.interactions import Interactions, PerUser
from truerank.errors import InputError
from truerank.recommenders import files
from truerank.scoring.factors import Factors
from truerank.scoring.numbers import Matrix
from truerank.scoring.similarity import Similarity
from truerank.threads import check_threads

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


class FactorModel(Factors):
    """Factors learnt by a recommender; scores are their inner products."""

    def __init__(
        self,
        user_factors: ArrayLike,
        item_factors: ArrayLike,
        *,
        recommender: Recommender[FactorModel] | None = None,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
    ) -> None:
        super().__init__(user_factors, item_factors, user_ids=user_ids, item_ids=item_ids)
        self.recommender = recommender

    def __repr__(self) -> str:
        return _shown(self)

    def save(self, path: str | Path) -> None:
        """Write to an `.npz` file, which `load_model` reads."""
        arrays = {"user_factors": self.user_factors, "item_factors": self.item_factors}
        files.write(path, self.recommender, arrays | _names(self))


class SimilarityModel(Similarity):
    """An item-item matrix learnt by a recommender, and the histories of the users it scores."""

    def __init__(
        self,
        similarity: Matrix,
        history: PerUser,
        *,
        recommender: Recommender[SimilarityModel] | None = None,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
    ) -> None:
        super().__init__(similarity, history, user_ids=user_ids, item_ids=item_ids)
        self.recommender = recommender

    def __repr__(self) -> str:
        return _shown(self)

    def save(self, path: str | Path) -> None:
        """Write to an `.npz` file, which `load_model` reads."""
        arrays = files.pack("similarity", self.similarity) | files.pack("history", self.history)
        files.write(path, self.recommender, arrays | _names(self))


def _shown(model: FactorModel | SimilarityModel) -> str:
    return f"{type(model).__name__}({model.n_users} users, {model.n_items} items, by {model.recommender!r})"


def _names(model: FactorModel | SimilarityModel) -> dict[str, AnyArray]:
    names = {"user_ids": model.user_ids, "item_ids": model.item_ids}
    return {name: ids for name, ids in names.items() if ids is not None}


def check_number(
    name: str, value: float, *, at_least: float | None = None, above: float | None = None, whole: bool = False
) -> None:
    """Raise `InputError` unless a setting is a finite number, or a whole one, within its bound."""
    kind = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kind) or not math.isfinite(value):
        raise InputError(f"`{name}` must be a {'whole' if whole else 'finite'} number, got {value!r}.")
    if at_least is not None and value < at_least:
        raise InputError(f"`{name}` must be at least {at_least}, got {value}.")
    if above is not None and value <= above:
        raise InputError(f"`{name}` must be above {above}, got {value}.")
