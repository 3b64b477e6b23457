"""Pipelines of LensKit: embeddings where its scorer uses them, else the pipeline itself, run for each user."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.errors import InputError
from truerank.scoring.adapters.unscored import below_others
from truerank.scoring.factors import Factors
from truerank.scoring.functions import FunctionScorer
from truerank.scoring.scorer import Scorer


def adapt(model: Any, data: Any) -> Scorer | None:
    """Return the scorer of a trained pipeline, with the ids that it was trained with."""
    from lenskit.data import ItemList
    from lenskit.pipeline import Pipeline

    if not isinstance(model, Pipeline):
        return None
    component: Any = model.component("scorer")
    if _uses_embeddings(component):
        ids = {"user_ids": component.users.ids(), "item_ids": component.items.ids()}
        return Factors(component.user_embeddings, component.item_embeddings, **ids)
    users, items = _vocabularies(model)
    everything = ItemList(items)

    def scores(numbers: Ints) -> AnyArray:
        lists = [model.run("scorer", query=user, items=everything) for user in users.ids()[numbers].tolist()]
        return below_others(np.stack([one.scores() for one in lists]))

    return FunctionScorer(scores, user_ids=users.ids(), item_ids=items.ids())


def _uses_embeddings(component: Any) -> bool:
    """Whether scores are inner products with the trained vector of the user, and nothing is added to them."""
    from lenskit.als import ImplicitMFScorer

    return isinstance(component, ImplicitMFScorer) and component.config.user_embeddings == "prefer"


def _vocabularies(pipeline: Any) -> tuple[Any, Any]:
    """Return the users and items of the training data, which the pipeline looks up histories in."""
    lookup: Any = pipeline.component("history-lookup") if pipeline.node("history-lookup", missing=None) else None
    if getattr(lookup, "interactions", None) is None:
        raise InputError("the pipeline has no trained component 'history-lookup', which knows its users and items.")
    return lookup.interactions.row_vocabulary, lookup.interactions.col_vocabulary
