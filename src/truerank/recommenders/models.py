"""What a recommender is before and after it has learnt: settings, and a model that can be ranked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp

from truerank.data.interactions import Interactions
from truerank.errors import InputError
from truerank.recommenders import files
from truerank.scoring.scorers import Factors, Similarity
from truerank.threads import available_threads

Model = TypeVar("Model", "FactorModel", "SimilarityModel")


class Recommender(ABC, Generic[Model]):
    """Settings of a recommender: a frozen value, which learning leaves as it was."""

    def fit(self, train: Any, *, threads: int | None = None, progress: bool = False) -> Model:
        """Return what can be learnt from the training interactions.

        Parameters
        ----------
        train : Interactions, sparse matrix, or list of item numbers per user
            A stored entry is an interaction, whatever its value.
        threads : int, optional
            As many as there are processors by default. The model does not depend on it.
        progress : bool
            Whether to show a progress bar, on a terminal only.

        Returns
        -------
        FactorModel or SimilarityModel
            Goes into `rank`, and can be saved.
        """
        if threads is not None:
            check_number("threads", threads, at_least=1, whole=True)
        known = Interactions.of(train, "train").matrix
        if known.nnz == 0:
            raise InputError("`train` must hold at least one interaction, got none.")
        ones = sp.csr_array((np.ones(known.nnz), known.indices, known.indptr), shape=known.shape)
        return self._learn(ones, threads or available_threads(), progress)

    @abstractmethod
    def _learn(self, train: sp.csr_array, threads: int, progress: bool) -> Model:
        """Learn from a matrix of ones, of which there is at least one."""


@dataclass(frozen=True, eq=False, repr=False)
class FactorModel(Factors):
    """Factors that a recommender has learnt; scores are their inner products."""

    recommender: Recommender[FactorModel] | None = None

    def __repr__(self) -> str:
        return _learnt(self)

    def save(self, path: str | Path) -> None:
        """Write to an `.npz` file, which `load_model` reads."""
        files.write(path, self.recommender, {"user_factors": self.user_factors, "item_factors": self.item_factors})


@dataclass(frozen=True, eq=False, repr=False)
class SimilarityModel(Similarity):
    """An item-item matrix that a recommender has learnt, and the histories it is to be applied to."""

    recommender: Recommender[SimilarityModel] | None = None

    def __repr__(self) -> str:
        return _learnt(self)

    def save(self, path: str | Path) -> None:
        """Write to an `.npz` file, which `load_model` reads."""
        arrays = files.pack("similarity", self.similarity) | files.pack("history", self.history)
        files.write(path, self.recommender, arrays)


def _learnt(model: FactorModel | SimilarityModel) -> str:
    return f"{type(model).__name__}({model.n_users} users, {model.n_items} items, by {model.recommender!r})"


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
