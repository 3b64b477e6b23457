"""What RecBole 1.2.1 needs around it."""

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give NumPy the names that it had before version 2, and RecBole a folder for its logs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("logs"))
        removed = {"float_": np.float64, "complex_": np.complex128, "unicode_": np.str_, "float": float, "bool": bool}
        for name, kept in removed.items():
            patch.setattr(np, name, kept, raising=False)
        yield
