"""Anything that can score (a function, an array or a model of another library) -> a `Scorer`.

Each library has an adapter, a function that takes a model and any further data it needs; the library is imported only
for its own models. An adapter uses the factors of a model where it has them, and the model's own scores otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from truerank.core.checks import AnyArray, InputError, Ints, check_kind, is_sparse
from truerank.scoring.scorers import Factors, FunctionScorer, Ids, ScoreMatrix, Scorer, Similarity, n_arguments

Scoreable = Scorer | AnyArray | Callable[[Ints], Any] | Callable[[Ints, Ints], Any] | Any
"""What `as_scorer` accepts; also SciPy sparse matrices, tensors, and models with their own scores or factors."""


def as_scorer(model: Scoreable, data: Any = None, *, user_ids: Ids = None, item_ids: Ids = None) -> Scorer:
    """Return a scorer for any object that can provide scores.

    `truerank.rank` and `truerank.rank_sampled` call it themselves. Call it to supply what a model of another library
    does not keep: the names of its users and items, or the data it was trained on.

    Parameters
    ----------
    model : Scorer, model, array, sparse matrix or function
        Tried in this order: a `Scorer`, which stays as it is; an object with a method ``scores(users)``, which takes
        precedence over any other attributes; a model of a library that has an adapter; an array or sparse matrix of
        scores; an object with `user_factors` and `item_factors` (and `item_bias` if it has one); a function with one
        required argument, users, or two, users and items.
    data : optional
        Further data that a model needs: for item-item models of implicit, the interactions of the users; for RecTools,
        its `Dataset`; for RecBole, the data loader of the test set, or its `Dataset`.
    user_ids, item_ids : arrays, optional
        Names of the model's users and items in the order of their numbers, if the model has none or different ones.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> tr.as_scorer(np.eye(3))
    ScoreMatrix(3 users, 3 items)
    >>> tr.as_scorer(lambda users, items: items).pairs(np.array([0]), np.array([7])).tolist()
    [7.0]
    >>> test = tr.read_interactions({0: ["y"], 1: ["x"]})
    >>> tr.rank(tr.as_scorer(np.array([[0.9, 0.1], [0.2, 0.3]]), item_ids=["x", "y"]), test=test).rank.tolist()
    [2, 2]
    """
    scorer = _converted(model, data)
    return scorer if user_ids is None and item_ids is None else scorer.named(user_ids, item_ids)


def _converted(model: Any, data: Any) -> Scorer:
    if isinstance(model, Scorer):
        return model
    if isinstance(model, type):
        raise InputError(f"can't get scores from the class {model.__name__}; give an instance of it.")
    if callable(getattr(model, "scores", None)):
        return FunctionScorer(model.scores, **_attributes(model))
    if (scorer := adapted(model, data)) is not None:
        return scorer
    if is_sparse(model) or hasattr(model, "__array__"):
        return ScoreMatrix(model)
    if hasattr(model, "user_factors") and hasattr(model, "item_factors"):
        return Factors(model.user_factors, model.item_factors, getattr(model, "item_bias", None))
    if callable(model):
        return FunctionScorer(model, pairs=n_arguments(model) == 2)
    name = type(model).__name__
    if callable(getattr(model, "fit", None)):
        hint = (
            f"fit it first, as in {name}(...).fit(train); if it is fitted, give its factors, similarity or score matrix"
        )
        raise InputError(f"{name} has no scores yet: {hint}, or a function.")
    raise InputError(f"can't get scores from {name}; give factors, a similarity, a score matrix or a function.")


def _attributes(model: Any) -> dict[str, Any]:
    """Return what a model of another library states about its users and items."""
    sizes = {name: getattr(model, name, None) for name in ("n_users", "n_items")}
    names: dict[str, Any] = {name: getattr(model, name, None) for name in ("user_ids", "item_ids")}
    stated = {name: size for name, size in sizes.items() if isinstance(size, int | np.integer)}
    return stated | {name: ids for name, ids in names.items() if np.ndim(ids) == 1}


Adapter = Callable[[Any, Any], Scorer | None]
"""Takes a model and any further data it needs, or None; returns None for an object that is not a model."""

A = TypeVar("A", bound=Adapter)


def register_adapter(library: str) -> Callable[[A], A]:
    """Return a decorator that registers a function that turns the models of a library into scorers.

    Parameters
    ----------
    library : str
        The top-level package of the models' classes. The function is called for their objects and those of derived
        classes, and takes precedence over an adapter that comes with truerank.

    Examples
    --------
    >>> import fractions, numpy as np, truerank as tr
    >>> @tr.register_adapter("fractions")
    ... def adapt(model, data):
    ...     return tr.ScoreMatrix([[float(model), 0.5]])
    >>> tr.rank(fractions.Fraction(1, 3), test=[[0]]).rank.tolist()
    [2]
    """
    check_kind("library", library, str)

    def register(adapter: A) -> A:
        if not callable(adapter):
            raise InputError(f"the adapter of {library} must be a function of model and data, got {adapter!r}.")
        ADAPTERS[library] = adapter
        return adapter

    return register


def adapted(model: Any, data: Any) -> Scorer | None:
    """Return the scorer of the first adapter that accepts the model, or None."""
    for library in dict.fromkeys(kind.__module__.partition(".")[0] for kind in type(model).__mro__):
        if library in ADAPTERS and (scorer := ADAPTERS[library](model, data)) is not None:
            return scorer
    return None


def _implicit(model: Any, data: Any) -> Scorer | None:
    """Models of implicit: factors, biases among them, or similarities applied to the users' histories; no names."""
    learned = [name for name in ("user_factors", "similarity") if hasattr(model, name)]
    if not learned:
        return None
    if getattr(model, learned[0]) is None:
        raise InputError(f"{type(model).__name__} must be fitted before it can score.")
    if learned == ["user_factors"]:
        return Factors(_on_cpu(model.user_factors), _on_cpu(model.item_factors))
    if data is None:
        name = type(model).__name__
        raise InputError(f"{name} keeps no histories of users; give `train`, or tr.as_scorer(model, user_items).")
    return Similarity(model.similarity, data)


def _on_cpu(factors: Any) -> Any:
    """Return the factors of a model on the GPU as an array."""
    return factors.to_numpy() if hasattr(factors, "to_numpy") else factors


def _lightfm(model: Any, data: Any) -> Scorer | None:
    """Models of LightFM, trained without features: representations of users and items, and the item biases."""
    if not hasattr(model, "get_user_representations"):
        return None
    _, users = model.get_user_representations()
    biases, items = model.get_item_representations()
    return Factors(users, items, biases)


def _pyspark(model: Any, data: Any) -> Scorer | None:
    """ALS models of Spark: factors, collected from the cluster, with the ids that they were trained with."""
    if not hasattr(model, "userFactors"):
        return None
    (user_ids, users), (item_ids, items) = _collected(model.userFactors), _collected(model.itemFactors)
    return Factors(users, items, user_ids=user_ids, item_ids=item_ids)


def _collected(frame: Any) -> tuple[AnyArray, AnyArray]:
    """Return the columns `id` and `features` of a Spark dataframe as arrays."""
    rows = frame.select("id", "features").collect()
    ids, features = zip(*rows, strict=True) if rows else ((), ())
    return np.array(ids, np.int64), np.array(features, np.float32).reshape(len(rows), -1)


# of the range of a user's scores: what another order of float32 additions may change
_ROUNDING = 1e-5


def _cornac(model: Any, data: Any) -> Scorer | None:
    """Models of Cornac: vectors where a model has them, else its method `score`; ids by its maps."""
    from cornac.models import recommender

    if not isinstance(model, recommender.Recommender):
        return None
    if model.uid_map is None:
        raise InputError(f"{type(model).__name__} must be fitted before it can score.")
    users, items = _cornac_ids(model.uid_map, model.num_users), _cornac_ids(model.iid_map, model.num_items)
    ids: dict[str, Any] = {"user_ids": users, "item_ids": items}

    def scores(users: Ints) -> AnyArray:
        return np.stack([np.ravel(model.score(user))[: model.num_items] for user in users.tolist()])

    by_score = FunctionScorer(scores, **ids)
    if not recommender.is_ann_supported(model) or is_sparse(own := model.get_user_vectors()):
        return by_score
    kinds = {
        recommender.MEASURE_DOT: Factors,
        recommender.MEASURE_COSINE: Factors.cosine,
        recommender.MEASURE_L2: Factors.euclidean,
    }
    vectors = own[: model.num_users], model.get_item_vectors()[: model.num_items]
    factors = kinds[model.get_vector_measure()](*vectors, **ids)
    return factors if _same_order(factors, by_score) else by_score


def _same_order(factors: Factors, by_score: FunctionScorer) -> bool:
    """Whether vectors order the items of the first user as `score` does, which is not true of every model."""
    ours, theirs = (scorer.scores(np.zeros(1, np.int64))[0] for scorer in (factors, by_score))
    falling = theirs[np.argsort(-ours)]
    return bool(np.all(np.diff(falling) <= _ROUNDING * np.ptp(falling)))


def _cornac_ids(numbers: dict[Any, int], size: int) -> AnyArray:
    """Return the ids by number; those beyond `size` belong to users or items without training events."""
    return np.array([name for name, number in sorted(numbers.items(), key=lambda pair: pair[1]) if number < size])


def _lenskit(model: Any, data: Any) -> Scorer | None:
    """Pipelines of LensKit: embeddings where its scorer uses them, else the pipeline itself, run for each user."""
    from lenskit.als import ImplicitMFScorer
    from lenskit.data import ItemList
    from lenskit.pipeline import Pipeline

    if not isinstance(model, Pipeline):
        return None
    component: Any = model.component("scorer")
    # then scores are inner products with the trained vector of the user, and nothing is added to them
    if isinstance(component, ImplicitMFScorer) and component.config.user_embeddings == "prefer":
        ids = {"user_ids": component.users.ids(), "item_ids": component.items.ids()}
        return Factors(component.user_embeddings, component.item_embeddings, **ids)
    users, items = _vocabularies(model)
    everything = ItemList(items)

    def scores(numbers: Ints) -> AnyArray:
        lists = [model.run("scorer", query=user, items=everything) for user in users.ids()[numbers].tolist()]
        return _below_others(np.stack([one.scores() for one in lists]))

    return FunctionScorer(scores, user_ids=users.ids(), item_ids=items.ids())


def _vocabularies(pipeline: Any) -> tuple[Any, Any]:
    """Return the users and items of the training data, in which the pipeline looks up histories."""
    lookup: Any = pipeline.component("history-lookup") if pipeline.node("history-lookup", missing=None) else None
    if getattr(lookup, "interactions", None) is None:
        raise InputError("the pipeline has no trained component 'history-lookup', which knows its users and items.")
    return lookup.interactions.row_vocabulary, lookup.interactions.col_vocabulary


def _rectools(model: Any, data: Any) -> Scorer | None:
    """Models of RecTools: vectors and their distance if a model has them, else its recommendations among all items."""
    from rectools.dataset import Dataset
    from rectools.models.base import ModelBase
    from rectools.models.rank import Distance

    if not isinstance(model, ModelBase):
        return None
    if not isinstance(data, Dataset):
        raise InputError(f"{type(model).__name__} keeps no ids; give tr.as_scorer(model, dataset) with its Dataset.")
    ids = {"user_ids": data.user_id_map.external_ids, "item_ids": data.item_id_map.external_ids}
    if not hasattr(model, "get_vectors"):
        return FunctionScorer(lambda users: _rectools_scores(model, data, users), **ids)
    kinds = {Distance.DOT: Factors, Distance.COSINE: Factors.cosine, Distance.EUCLIDEAN: Factors.euclidean}
    vectors = model.get_vectors(data) if n_arguments(model.get_vectors) else model.get_vectors()
    return kinds[model.u2i_dist](*vectors, **ids)


def _rectools_scores(model: Any, data: Any, users: Ints) -> AnyArray:
    """Return the scores of all items; those that the model does not recommend tie below the others."""
    names = data.user_id_map.convert_to_external(users)
    listed = model.recommend(names, data, k=data.item_id_map.size, filter_viewed=False)
    order = np.argsort(users)
    rows = order[np.searchsorted(users[order], data.user_id_map.convert_to_internal(listed["user_id"]))]
    scores = np.full((users.size, data.item_id_map.size), np.nan)
    scores[rows, data.item_id_map.convert_to_internal(listed["item_id"])] = listed["score"]
    return _below_others(scores)


def _recbole(model: Any, data: Any) -> Scorer | None:
    """Models of RecBole: their method `full_sort_predict`, without the padding item; ids by the dataset's tokens.

    `data` is the data loader of the test set, or a dataset. The instances of a sequential model are the rows of the
    test set, of which each user may have one.
    """
    from recbole.model.abstract_recommender import AbstractRecommender, SequentialRecommender

    if not isinstance(model, AbstractRecommender):
        return None
    dataset = getattr(data, "dataset", data)
    if not hasattr(dataset, "field2id_token"):
        raise InputError(f"{type(model).__name__} keeps no ids; give tr.as_scorer(model, test_data) of RecBole.")
    _check_mode(model)
    users, rows = _recbole_rows(dataset) if isinstance(model, SequentialRecommender) else _recbole_users(dataset)

    def scores(numbers: Ints) -> AnyArray:
        import torch

        with torch.inference_mode():
            flat = model.full_sort_predict(rows[numbers].to(model.device))
        return flat.view(numbers.size, -1)[:, 1:]  # item 0 is padding

    return FunctionScorer(
        scores,
        user_ids=_tokens(dataset, dataset.uid_field, users),
        item_ids=_tokens(dataset, dataset.iid_field, np.arange(1, dataset.item_num)),
    )


def _recbole_users(dataset: Any) -> tuple[Ints, Any]:
    """Return all users, and what the model reads for each."""
    import torch
    from recbole.data.interaction import Interaction

    users = np.arange(1, dataset.user_num)  # user 0 is padding
    return users, dataset.join(Interaction({dataset.uid_field: torch.as_tensor(users)}))


def _recbole_rows(dataset: Any) -> tuple[Ints, Any]:
    """Return the user of each row of a test set, and the rows, with the sequence of items before each."""
    users = dataset.inter_feat[dataset.uid_field].numpy()
    if np.unique(users).size < users.size:
        raise InputError("each user must have one row in the test set of a sequential model, as in leave-one-out.")
    return users, dataset.inter_feat


def _tokens(dataset: Any, field: str, numbers: Ints) -> AnyArray:
    """Return tokens; as numbers if all of them are, since RecBole keeps every id as text."""
    tokens = np.asarray(dataset.id2token(field, numbers)).astype(np.str_)
    if not np.char.isdecimal(tokens).all():
        return tokens
    whole = tokens.astype(np.int64)
    return whole if np.array_equal(whole.astype(np.str_), tokens) else tokens


def _torch(model: Any, data: Any) -> Scorer | None:
    """PyTorch modules, called with tensors of user numbers, and of item numbers if they take two."""
    import torch

    if not isinstance(model, torch.nn.Module):
        return None
    if isinstance(model, torch.nn.Embedding):
        raise InputError("an Embedding holds vectors, not scores; give tr.Factors(user_embedding, item_embedding).")
    _check_mode(model)
    return FunctionScorer(_on_its_device(model), pairs=n_arguments(model.forward) == 2)


def _check_mode(model: Any) -> None:
    """Refuse a module in training mode."""
    if model.training:
        name = type(model).__name__
        raise InputError(f"{name} is in training mode, in which dropout is random; call model.eval() first.")


def _on_its_device(model: Any) -> Callable[..., Any]:
    """Return a function of arrays that calls a module on its device, without gradients."""
    import torch

    def score(*numbers: Ints) -> Any:
        device = next((part.device for part in model.parameters()), torch.device("cpu"))
        with torch.inference_mode():
            return model(*(torch.as_tensor(part, device=device) for part in numbers))

    return score


def _below_others(scores: AnyArray) -> AnyArray:
    """Return the scores with NaN replaced by one value for each user, just below all of the user's scores.

    Examples
    --------
    >>> _below_others(np.array([[2.0, np.nan, 1.0, np.nan]])).round(9).tolist()
    [[2.0, 1.0, 1.0, 1.0]]
    """
    lowest = np.min(scores, axis=1, keepdims=True, initial=np.inf, where=~np.isnan(scores))
    floor = np.nextafter(np.where(np.isinf(lowest), 0, lowest), -np.inf, dtype=scores.dtype)
    return np.where(np.isnan(scores), floor, scores)


ADAPTERS: dict[str, Adapter] = {
    "cornac": _cornac, "implicit": _implicit, "lenskit": _lenskit, "lightfm": _lightfm,
    "pyspark": _pyspark, "recbole": _recbole, "rectools": _rectools, "torch": _torch,
}  # fmt: skip
"""By the top-level package of the models' classes."""
