"""The Gini index of lists against that of LensKit, with items that are never recommended."""

import lenskit.data  # noqa: F401 # before lenskit.stats, which can't be imported alone
import numpy as np
import pytest
from lenskit.stats import gini

import truerank as tr


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 5])
def test_gini_is_that_of_lenskit(seed: int, k: int) -> None:
    lists = tr.recommend(np.random.default_rng(seed).standard_normal((30, 200)), k=5)
    found = tr.evaluate(lists, f"gini@{k}")[f"gini@{k}"].mean
    assert found == pytest.approx(gini(lists.counts(k).astype(float)), abs=1e-12)
    assert np.any(lists.counts(k) == 0)
