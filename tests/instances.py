"""Random small instances: scores, what is relevant, and the ranks they mean."""

import numpy as np
from hypothesis import strategies as st

import truerank as tr
from tests import reference

Instance = tuple[list[float], list[bool]]


@st.composite
def instances(draw: st.DrawFn, max_candidates: int = 6, max_score: int = 3) -> Instance:
    """Draw up to six candidates with few different scores, so that many tie."""
    scores = draw(st.lists(st.integers(0, max_score).map(float), min_size=1, max_size=max_candidates))
    relevant = draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)))
    return scores, relevant


def ranks_of(*given: Instance) -> tr.Ranks:
    """Return the ranks of instances, by the slow definition of `above` and `tied`."""
    counted = [reference.count(*instance) for instance in given]
    return tr.Ranks(
        above=[number for above, _ in counted for number in above],
        tied=[number for _, tied in counted for number in tied],
        n_candidates=[len(scores) for scores, _ in given],
        indptr=np.cumsum([0] + [len(above) for above, _ in counted]),
    )
