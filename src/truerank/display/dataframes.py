"""Results as dataframes of pandas, polars or pyarrow, typed by the library that is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Backend = Literal["pandas", "polars", "pyarrow"]
"""A dataframe library."""


def frame(columns: Mapping[str, Any], backend: Backend) -> Any:
    """Return columns as a dataframe of the chosen library.

    Examples
    --------
    >>> frame({"user": ["ann"], "ap": [0.5]}, "pyarrow").column_names
    ['user', 'ap']
    """
    import narwhals as nw

    return nw.from_dict(columns, backend=backend).to_native()


class Framed(ABC):
    """Something with columns, which can be had as a dataframe."""

    @abstractmethod
    def _columns(self) -> Mapping[str, Any]:
        """Return the columns by name, all equally long."""

    @overload
    def to_frame(self, backend: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def to_frame(self, backend: Literal["polars"]) -> pl.DataFrame: ...
    @overload
    def to_frame(self, backend: Literal["pyarrow"]) -> pa.Table: ...
    @overload
    def to_frame(self, backend: Backend) -> pd.DataFrame | pl.DataFrame | pa.Table: ...
    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return everything at full precision as a dataframe of the chosen library.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
        """
        return frame(self._columns(), backend)
