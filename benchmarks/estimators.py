"""How far estimates from few scores are from the exact metrics, for every design and estimator at equal budgets.

Exact ranks of three recommenders are sampled again and again. For each budget (irrelevant candidates scored per user),
design and estimator: bias, standard deviation and root mean squared error in percent of the exact value, pooled over
the recommenders; how often a nominal 95 % interval covers the exact value; and how often the pair of recommenders that
is hardest to tell apart comes out in its exact order.

    python benchmarks/studies.py movielens FOLDER /tmp/movielens
    python benchmarks/estimators.py /tmp/movielens "MovieLens 1M" [--repetitions 200] [--slow 20] [--minutes 18]
        [--budgets 100 300] [--kinds fixed inverse uncapped] [--estimators monotone bv]

What was estimated is kept in the folder, so the same call again goes on where the last one ended. Rows are added to
benchmarks/results/estimators.csv, in place of those of the same data, budget, design and estimator.
benchmarks/estimator_tables.py writes the tables of docs/results/estimators.md from them.

Intervals are of two kinds. Those of estimators that fit the law of the ranks are for the mean over the very users, from
the candidates' sampling alone. Those of the others are for the mean over many users like these: 1,000 of the users are
drawn at random, five times, and the spread of their values makes the interval.
"""

import argparse
import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import studies
import truerank as tr
from estimator_plans import Plan, plans
from truerank.core.checks import Floats
from truerank.estimators.corrected import recommended
from truerank.evaluation.intervals import Interval, Units

METRICS = ("recall@10", "ndcg@10", "ap")
SLOW = {"mn", "mes", "bv(auto)"}
FEW, AGAIN = 1_000, 5
NORMAL = 1.96
RESULTS = Path(__file__).parent / "results" / "estimators.csv"
ORACLE = "bv, best gamma"
ROLES = ("draws", "estimates", "errors", "covered")
KEYS = ["data", "budget", "design", "estimator", "metric"]


@dataclass(frozen=True)
class Result:
    """What was estimated: arrays of shape (repetitions, recommenders, metrics), NaN where there is none.

    `draws` are the mean draws, of shape (repetitions, recommenders).
    """

    plan: Plan
    estimator: str
    draws: Floats
    estimates: Floats
    errors: Floats
    covered: Floats

    @property
    def repetitions(self) -> int:
        return len(self.estimates)

    def __add__(self, other: "Result") -> "Result":
        both = (np.concatenate([getattr(self, role), getattr(other, role)]) for role in ROLES)
        return Result(self.plan, self.estimator, *both)


@dataclass(frozen=True)
class Study:
    """Exact ranks by recommender, their metrics, and the folder in which estimates from samples of them are kept."""

    ranks: dict[str, tr.Ranks]
    truth: Floats
    folder: Path

    def results(self, plan: Plan) -> dict[str, Result]:
        """Return what was estimated so far, by estimator."""
        return {name: self._kept(plan, name) for name in plan.estimators}

    def _kept(self, plan: Plan, name: str) -> Result:
        path = self._path(plan, name)
        if not path.exists():
            nothing = np.empty((0, len(self.ranks), len(METRICS)))
            return Result(plan, name, np.empty((0, len(self.ranks))), nothing, nothing, nothing)
        with np.load(path) as file:
            return Result(plan, name, *(file[role] for role in ROLES))

    def keep(self, result: Result) -> None:
        arrays: dict[str, Any] = {role: getattr(result, role) for role in ROLES}
        np.savez(self._path(result.plan, result.estimator), **arrays)

    def _path(self, plan: Plan, estimator: str) -> Path:
        return self.folder / f"{plan.budget} {plan.design} {estimator}.npz"

    def recommended(self, plan: Plan, metric: str) -> str:
        """Return the estimator that a metric takes when none is named."""
        sampled = plan.draw(next(iter(self.ranks)), 0)
        return str(recommended(tr.metric(metric), sampled)).partition("~")[2]

    def extend(self, plan: Plan, wanted: dict[str, int], until: float) -> None:
        """Sample and estimate until there are so many repetitions for each estimator, or the time is over."""
        found = {name: self._kept(plan, name) for name in wanted}
        for seed in range(max(wanted.values(), default=0)):
            names = [name for name in wanted if found[name].repetitions == seed < wanted[name]]
            if time.monotonic() > until:
                break
            for name, one in self._repetition(plan, names, seed).items() if names else ():
                found[name] = found[name] + one
        for name, result in found.items():
            if result.repetitions > self._kept(plan, name).repetitions:
                self.keep(result)

    def _repetition(self, plan: Plan, names: list[str], seed: int) -> dict[str, Result]:
        shape = (1, len(self.ranks), len(METRICS))
        draws = np.empty(shape[:2])
        found = {name: Result(plan, name, draws, *(np.full(shape, np.nan) for _ in range(3))) for name in names}
        for place, recommender in enumerate(self.ranks):
            sampled = plan.draw(recommender, seed)
            draws[0, place] = sampled.draws.mean()
            for name, (column, metric) in itertools.product(names, enumerate(METRICS)):
                if _has(name, metric):
                    at = (0, place, column)
                    one, mine = _estimate(sampled, f"{metric}~{name}", self.truth[place, column], seed), found[name]
                    mine.estimates[at], mine.errors[at], mine.covered[at] = one
        return found


def _has(estimator: str, metric: str) -> bool:
    """Whether the metric has this estimate: of these, only AP has an unbiased one."""
    return estimator != "unbiased" or metric == "ap"


def _estimate(sampled: tr.Ranks, name: str, truth: float, seed: int) -> tuple[float, float, float]:
    """Return the estimate, its error from the candidates' sampling, and how often its interval covers the truth."""
    metric = tr.metric(name)
    values = tr.values(sampled, metric)
    mean = float(values.mean())
    if hidden := metric.hidden_error(sampled):
        return mean, hidden, float(abs(mean - truth) <= NORMAL * hidden)
    drawn = values[np.random.default_rng([seed, FEW]).integers(values.size, size=(AGAIN, FEW))]
    ends = Interval(float(values.min()), float(values.max()))
    intervals = [Units.of(each).interval(0.95, ends) for each in drawn]
    return mean, np.nan, float(np.mean([low <= truth <= high for low, high in intervals]))


def best_gamma(results: list[Result], truth: Floats) -> list[Result]:
    """Replace all bias-variance results of a design by the best for each metric, which only an oracle can choose."""
    of_gamma = [result for result in results if result.estimator.startswith("bv(0")]
    if not of_gamma:
        return results
    best = np.stack([rmse(result, truth) for result in of_gamma]).argmin(axis=0)
    chosen = (
        np.stack([getattr(of_gamma[row], role)[..., column] for column, row in enumerate(best)], axis=-1)
        for role in ROLES[1:]
    )
    oracle = Result(of_gamma[0].plan, ORACLE, of_gamma[0].draws, *chosen)
    return [*(result for result in results if not result.estimator.startswith("bv(0")), oracle]


def relative(result: Result, truth: Floats) -> Floats:
    return 100 * (result.estimates - truth) / truth


def rmse(result: Result, truth: Floats) -> Floats:
    return np.asarray(np.sqrt(np.square(relative(result, truth)).mean(axis=(0, 1))))


def order(result: Result, truth: Floats) -> Floats:
    """How often the worst pair is in its exact order, by metric."""
    pairs = itertools.combinations(range(truth.shape[0]), 2)
    right = [np.sign(result.estimates[:, a] - result.estimates[:, b]) == np.sign(truth[a] - truth[b]) for a, b in pairs]
    return np.asarray(np.min([each.mean(axis=0) for each in right], axis=0))


def rows(result: Result, study: Study, data: str) -> Iterator[dict[str, object]]:
    truth = study.truth
    errors = relative(result, truth)
    bias, deviation = errors.mean(axis=(0, 1)), np.sqrt(errors.var(axis=0).mean(axis=0))
    size, right, covered = rmse(result, truth), order(result, truth), result.covered.mean(axis=(0, 1))
    for column, metric in enumerate(METRICS):
        if not np.isnan(size[column]):
            yield {
                "data": data,
                "budget": result.plan.budget,
                "design": result.plan.design,
                "estimator": result.estimator,
                "metric": metric,
                "draws": round(float(result.draws.mean()), 1),
                "bias": round(float(bias[column]), 2),
                "sd": round(float(deviation[column]), 2),
                "rmse": round(float(size[column]), 2),
                "coverage": round(float(covered[column]), 3),
                "order": round(float(right[column]), 3),
                "repetitions": result.repetitions,
                "recommended": study.recommended(result.plan, metric) == result.estimator,
            }


def add(found: list[dict[str, object]]) -> None:
    """Write rows into the file of results, in place of those with the same keys."""
    RESULTS.parent.mkdir(exist_ok=True)
    before = [pd.read_csv(RESULTS)] if RESULTS.exists() else []
    table = pd.concat([*before, pd.DataFrame(found)]).drop_duplicates(KEYS, keep="last")
    table.sort_values(KEYS, kind="stable").to_csv(RESULTS, index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("data")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--slow", type=int, default=20, help="Repetitions of the estimators that take long.")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="When to stop.")
    parser.add_argument("--budgets", type=int, nargs="+", default=[50, 100, 200, 300, 500])
    parser.add_argument("--kinds", nargs="+", default=["fixed", "inverse", "uncapped"])
    parser.add_argument("--estimators", nargs="+", default=[""], help="Those to run, by the beginning of their names.")
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    ranks = studies.load(given.folder)
    truth = np.array([[tr.values(one, metric).mean() for metric in METRICS] for one in ranks.values()])
    study = Study(ranks, truth, given.folder / "estimates")
    study.folder.mkdir(exist_ok=True)
    chosen = list(plans(ranks, given.budgets, given.kinds))
    # all plans get some repetitions before any of them gets all
    for part in (0.1, 1.0):
        for plan in chosen:
            names = [name for name in plan.estimators if name.startswith(tuple(given.estimators))]
            most = {name: given.slow if name in SLOW else given.repetitions for name in names}
            study.extend(plan, {name: math.ceil(part * number) for name, number in most.items()}, until)
    for plan in chosen:
        results = [result for result in study.results(plan).values() if result.repetitions]
        add([row for result in best_gamma(results, truth) for row in rows(result, study, given.data)])


if __name__ == "__main__":
    main()
