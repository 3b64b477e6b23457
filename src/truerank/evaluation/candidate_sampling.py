"""How much of the spread of sampled metrics comes from which candidates happened to be sampled.

The law of a sampled count is known for each exact rank. So one run tells how much another one would differ: exact ranks
are drawn from what the sample leaves open, each is sampled twice, and half the squared difference of the two values
has the variance over samples as its mean. Several runs with different seeds tell it without any law.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.plausible_ranks import plausible_ranks, sampled_again
from truerank.errors import InputError
from truerank.evaluation.group_parts import Part, values_by_part
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks

# pairs of samples are drawn until so many values, over all instances, have been compared; at least 2 for each instance
_VALUES = 20_000
_MOST = 50


def variances_of_totals(ranks: Ranks, metrics: Sequence[Metric], parts: Sequence[Part]) -> Floats:
    """Return the variance, over samples of candidates, of the total of each metric over the instances of each part.

    Parameters
    ----------
    ranks : Ranks
        One sampled run, by a uniform design.
    metrics : sequence of Metric
        Those that pool the instances state their own error.
    parts : sequence of Part

    Returns
    -------
    array of shape (n_metrics, n_parts)

    Examples
    --------
    >>> import truerank as tr
    >>> from truerank.evaluation.group_parts import split_by
    >>> exact = tr.Ranks.from_ranks(np.random.default_rng(0).geometric(0.01, 3_000).clip(1, 1_000), n=1_000)
    >>> sampled = tr.UniformSampling(100).draw(exact, rng=0)
    >>> found = variances_of_totals(sampled, [tr.metric("ap")], split_by(sampled, None))[0, 0]
    >>> true = tr.risk(exact, "ap", m=100).variance.sum()
    >>> bool(abs(found / true - 1) < 0.1)
    True
    """
    found = np.zeros((len(metrics), len(parts)))
    plain = [at for at, metric in enumerate(metrics) if not metric.pools_instances]
    if plain:
        found[plain] = _drawn_variances(ranks, [metrics[at] for at in plain], parts)
    for at in set(range(len(metrics))) - set(plain):
        found[at] = [(hidden_error(ranks, metrics[at], part) * part.weights.sum()) ** 2 for part in parts]
    return found


def hidden_error(ranks: Ranks, metric: Metric, part: Part) -> float:
    """Return the error of the mean over a part that the spread of the values does not show."""
    return metric.hidden_error(ranks[part.rows] if part.name else ranks)


def _drawn_variances(ranks: Ranks, metrics: Sequence[Metric], parts: Sequence[Part]) -> Floats:
    rng, found = np.random.default_rng(0), np.zeros((len(metrics), len(parts)))
    rounds = int(np.clip(np.ceil(_VALUES / max(len(ranks), 1)), 2, _MOST))
    for exact in islice(plausible_ranks(ranks, rng=rng), rounds):
        one, other = (sampled_again(exact, ranks, rng=rng) for _ in range(2))
        for place, metric in enumerate(metrics):
            found[place] += _half_squares(metric, one, other, parts)
    return found / rounds


def _half_squares(metric: Metric, one: Ranks, other: Ranks, parts: Sequence[Part]) -> Floats:
    """Return half the squared differences of two runs, summed over each part."""
    try:
        pairs = zip(*(values_by_part(run, metric.terms(run), parts) for run in (one, other)), strict=True)
    except InputError:
        # draws that end at a cap have no unbiased estimate, even if none of the run that is compared did
        return np.full(len(parts), np.nan)
    return np.array([np.nansum(np.square(a - b)) / 2 for a, b in pairs])


def covariances_of_totals(runs: Floats) -> Floats:
    """Return the covariances, over samples, of the totals of mean values over several runs.

    Parameters
    ----------
    runs : array of shape (n_runs, n_instances, n_recommenders)
        Values of runs with different seeds; the j-th runs of all recommenders may share their candidates.

    Examples
    --------
    >>> covariances_of_totals(np.array([[[1.0, 1.0]], [[3.0, 5.0]]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    gaps = runs - runs.mean(axis=0)
    products = np.einsum("jua,jub->ab", *2 * [np.nan_to_num(gaps)])
    return np.asarray(products / (len(runs) - 1) / len(runs))


def sampling_variance(own: Floats, total: Floats | None) -> float:
    """Return the variance over samples of a total difference.

    Parameters
    ----------
    own : array of shape (2, 2)
        Covariances of the two totals over samples; off the diagonal 0 for single runs, which do not show it.
    total : array of shape (2, 2), optional
        Covariances of the totals over samples and instances, if both recommenders see the same candidates: single runs
        then have the bound of `shared_variance`. Several runs show what the candidates have in common.

    Examples
    --------
    >>> sampling_variance(np.eye(2), None)
    2.0
    """
    if total is None or own[0, 1] != 0:
        return float(own[0, 0] + own[1, 1] - 2 * own[0, 1])
    return shared_variance(np.diag(own), total)


def shared_variance(own: Floats, total: Floats) -> float:
    r"""Return the most that a difference can vary over samples if both recommenders see the same candidates.

    With variances over samples :math:`V_a, V_b` and between instances :math:`B_a, B_b`, the covariance of the values is
    at most :math:`C + \sqrt{B_a B_b}`, where C is the unknown covariance over samples. So
    :math:`V_a + V_b - 2 C` is at most the variance of the differences less :math:`(\sqrt{B_a} - \sqrt{B_b})^2`. It is
    also at most :math:`V_a + V_b`, since C is taken not to be negative.

    Parameters
    ----------
    own : array of length 2
        Variances over samples.
    total : array of shape (2, 2)
        Covariances of the values, over samples and instances.

    Examples
    --------
    >>> shared_variance(np.array([1.0, 1.0]), np.array([[3.0, 2.5], [2.5, 3.0]]))
    1.0
    """
    between = np.sqrt(np.maximum(np.diag(total) - own, 0.0))
    most = total[0, 0] + total[1, 1] - 2 * total[0, 1] - (between[0] - between[1]) ** 2
    return float(np.clip(most, 0.0, own.sum()))
