"""Models as `.npz` files, without pickle: arrays, and a line of JSON with the recommender and its settings."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from truerank.arrays import AnyArray
from truerank.errors import InputError
from truerank.formats.arrays import load_arrays
from truerank.formats.writing import check_writable, replacing
from truerank.scoring.numbers import Matrix

_PARTS = ("data", "indices", "indptr", "shape")


def write(path: str | Path, recommender: Any, arrays: dict[str, AnyArray]) -> None:
    """Write arrays, with the name and settings of the recommender, a dataclass, that made them."""
    check_writable(path, (".npz",))
    settings = {name: _plain(value) for name, value in asdict(recommender).items()}
    about = {"truerank": version("truerank"), "recommender": type(recommender).__name__, "settings": settings}
    with replacing(path) as (file,):
        np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the name and the settings of the recommender as a dict, and the arrays."""
    arrays = load_arrays(path)
    try:
        about = json.loads(str(arrays.pop("about", "")))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r} was not written by the `save` of a model.") from error
    kinds = {"recommender": str, "settings": dict}
    if not isinstance(about, dict) or not all(isinstance(about.get(name), kind) for name, kind in kinds.items()):
        raise InputError(f"{str(path)!r} was not written by the `save` of a model.")
    return {name: about[name] for name in kinds}, arrays


def pack(name: str, matrix: Matrix) -> dict[str, AnyArray]:
    """Return a dense or sparse matrix as arrays to write."""
    if not sp.issparse(matrix):
        return {name: matrix}
    return {f"{name}_{part}": np.asarray(getattr(matrix, part)) for part in _PARTS}


def unpack(name: str, arrays: dict[str, AnyArray]) -> Matrix:
    """Return what `pack` packed, or raise `InputError` if it is inconsistent."""
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
