"""How far estimates from few scores are from the exact metrics, for every design and estimator at equal budgets.

Exact ranks of three recommenders are sampled again and again. For each budget (irrelevant candidates scored per user),
design and estimator: bias, standard deviation and root mean squared error in percent of the exact value, pooled over
the recommenders; how often a nominal 95 % interval covers the exact value; and how often the pair of recommenders that
is hardest to tell apart comes out in its exact order.

    python benchmarks/studies.py movielens FOLDER /tmp/movielens
    python benchmarks/estimators.py /tmp/movielens "MovieLens 1M" [--repetitions 200] [--budgets 100 300]
        [--kinds fixed inverse roulette] [--slow 20]

Rows are added to benchmarks/results/estimators.csv, in place of those of the same data, budget and design. Without a
folder the results are printed as they stand in docs/estimating.md.

Intervals are of two kinds. Those of estimators that fit the law of the ranks are for the mean over the very users, from
the candidates' sampling alone. Those of the others are for the mean over many users like these: 1,000 of the users are
drawn at random, five times, and the spread of their values makes the interval.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import studies
import truerank as tr
from truerank.arrays import Floats, Ints

METRICS = ("recall@10", "ndcg@10", "ap")
GAMMAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
FIXED = ["monotone", "smooth", "em", "mes", "mn", "bv(auto)", *(f"bv({gamma:g})" for gamma in GAMMAS)]
SLOW = {"mn", "mes"}
MOST_HITS = 8
FEW, AGAIN = 1_000, 5
RESULTS = Path(__file__).parent / "results" / "estimators.csv"
KEYS = ["data", "budget", "design", "estimator", "metric"]

Draw = Callable[[str, int], tr.Ranks]
"""From the name of a recommender and a seed to sampled ranks."""


@dataclass(frozen=True)
class Plan:
    """A design at a budget, how to draw by it, and the estimators to try."""

    budget: int
    design: str
    draw: Draw
    estimators: list[str]


@dataclass(frozen=True)
class Result:
    """Estimates of each metric: arrays of shape (repetitions, recommenders, metrics), NaN where there is none."""

    plan: Plan
    estimator: str
    draws: float
    estimates: Floats
    covered: Floats

    @property
    def repetitions(self) -> int:
        return len(self.estimates)


def fixed(ranks: dict[str, tr.Ranks], budget: int) -> Plan:
    design = tr.UniformSampling(budget)
    return Plan(budget, str(design), lambda name, seed: design.draw(ranks[name], rng=seed), FIXED)


def inverse(ranks: dict[str, tr.Ranks], budget: int) -> Plan:
    """Return inverse sampling with so many hits that it would cost more, and a cap that makes it cost the budget."""
    hits = next(hits for hits in range(1, MOST_HITS + 1) if hits == MOST_HITS or _cost(ranks, hits, None) >= budget)
    low, high = 1, max(int(one.draws.max()) for one in ranks.values())
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _cost(ranks, hits, middle) <= budget else (low, middle)
    design = tr.InverseSampling(hits, most=low)
    return Plan(
        budget, str(design), lambda name, seed: design.draw(ranks[name], rng=seed), ["monotone", "smooth", "em"]
    )


def uncapped(ranks: dict[str, tr.Ranks], hits: int) -> Plan:
    design = tr.InverseSampling(hits)
    estimators = ["unbiased", "monotone", "smooth", "em"]
    budget = round(_cost(ranks, hits, None))
    return Plan(budget, f"inverse({hits})", lambda name, seed: design.draw(ranks[name], rng=seed), estimators)


def _cost(ranks: dict[str, tr.Ranks], hits: int, most: int | None) -> float:
    drawn = [tr.InverseSampling(hits, most).draw(one, rng=0).draws.mean() for one in ranks.values()]
    return float(np.mean(drawn))


def roulette(ranks: dict[str, tr.Ranks], proxy: str, levels: dict[str, Ints], budget: int) -> Plan:
    def draw(name: str, seed: int) -> tr.Ranks:
        return studies.play(ranks[name], levels[name], budget, seed)

    return Plan(budget, f"roulette, {proxy}", draw, ["unbiased"])


def plans(
    ranks: dict[str, tr.Ranks], levels: dict[str, dict[str, Ints]], budgets: list[int], kinds: list[str]
) -> Iterator[Plan]:
    for budget in budgets:
        if "fixed" in kinds:
            yield fixed(ranks, budget)
        if "inverse" in kinds:
            yield inverse(ranks, budget)
        if "roulette" in kinds:
            yield from (roulette(ranks, proxy, own, budget) for proxy, own in levels.items())
    if "uncapped" in kinds:
        yield from (uncapped(ranks, hits) for hits in (1, 2, 3))


def run(plan: Plan, ranks: dict[str, tr.Ranks], truth: Floats, repetitions: int, slow: int) -> list[Result]:
    """Sample and estimate, again and again."""
    times = {name: min(slow, repetitions) if name in SLOW else repetitions for name in plan.estimators}
    shapes = {name: (number, len(ranks), len(METRICS)) for name, number in times.items()}
    found = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
    covered = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
    draws = []
    for seed, (place, recommender) in itertools.product(range(repetitions), enumerate(ranks)):
        sampled = plan.draw(recommender, seed)
        draws.append(sampled.draws.mean())
        for name in plan.estimators:
            for column, metric in enumerate(METRICS):
                if seed < times[name] and _has(name, metric, sampled):
                    at = (seed, place, column)
                    found[name][at], covered[name][at] = _estimate(
                        sampled, f"{metric}~{name}", truth[place, column], seed
                    )
    tried = [name for name in plan.estimators if times[name]]
    return [Result(plan, name, float(np.mean(draws)), found[name], covered[name]) for name in tried]


def _has(estimator: str, metric: str, sampled: tr.Ranks) -> bool:
    """Whether the metric has this estimate: unbiased ones are of AP, or of those cut at 10 under roulette."""
    return estimator != "unbiased" or (metric == "ap") == (sampled.count_weights is None)


def _estimate(sampled: tr.Ranks, name: str, truth: float, seed: int) -> tuple[float, float]:
    """Return the estimate, and how often its interval covers the truth."""
    metric = tr.metric(name)
    values = tr.values(sampled, metric)
    if hidden := metric.hidden_error(sampled):
        return float(values.mean()), float(abs(values.mean() - truth) <= 1.96 * hidden)
    rng = np.random.default_rng([seed, FEW])
    drawn = values[rng.integers(values.size, size=(AGAIN, FEW))]
    errors = drawn.std(axis=1, ddof=1) / FEW**0.5
    return float(values.mean()), float(np.mean(np.abs(drawn.mean(axis=1) - truth) <= 1.96 * errors))


def best_gamma(results: list[Result], truth: Floats) -> list[Result]:
    """Replace all bias-variance results of a design by the best for each metric, which only an oracle can choose."""
    of_gamma = [result for result in results if result.estimator.startswith("bv(0")]
    if not of_gamma:
        return results
    best = np.stack([rmse(result, truth) for result in of_gamma]).argmin(axis=0)
    estimates, covered = (
        np.stack([getattr(of_gamma[row], role)[..., column] for column, row in enumerate(best)], axis=-1)
        for role in ("estimates", "covered")
    )
    first = of_gamma[0]
    chosen = Result(first.plan, "bv, best gamma", first.draws, estimates, covered)
    return [*(result for result in results if result not in of_gamma), chosen]


def relative(result: Result, truth: Floats) -> Floats:
    return 100 * (result.estimates - truth) / truth


def rmse(result: Result, truth: Floats) -> Floats:
    return np.asarray(np.sqrt(np.square(relative(result, truth)).mean(axis=(0, 1))))


def order(result: Result, truth: Floats) -> Floats:
    """How often the worst pair is in its exact order, by metric."""
    pairs = itertools.combinations(range(truth.shape[0]), 2)
    right = [np.sign(result.estimates[:, a] - result.estimates[:, b]) == np.sign(truth[a] - truth[b]) for a, b in pairs]
    return np.asarray(np.min([each.mean(axis=0) for each in right], axis=0))


def rows(result: Result, truth: Floats, data: str) -> Iterator[dict[str, object]]:
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
                "draws": round(result.draws, 1),
                "bias": round(float(bias[column]), 2),
                "sd": round(float(deviation[column]), 2),
                "rmse": round(float(size[column]), 2),
                "coverage": round(float(covered[column]), 3),
                "order": round(float(right[column]), 3),
                "repetitions": result.repetitions,
            }


def add(found: list[dict[str, object]]) -> None:
    """Write rows into the file of results, in place of those with the same keys."""
    RESULTS.parent.mkdir(exist_ok=True)
    before = [pd.read_csv(RESULTS)] if RESULTS.exists() else []
    table = pd.concat([*before, pd.DataFrame(found)]).drop_duplicates(KEYS, keep="last")
    table.sort_values(KEYS, kind="stable").to_csv(RESULTS, index=False)


def markdown() -> str:
    """Return the results as a table; columns hold Recall@10 / NDCG@10 / AP."""
    table = pd.read_csv(RESULTS)
    lines = ["| data | design | estimator | scores | bias, % | RMSE, % | coverage | order |", "|---" * 8 + "|"]
    for keys, part in table.groupby(["data", "budget", "design", "estimator"], sort=True):
        own = part.set_index("metric").reindex(METRICS)
        forms = {"bias": "{:.1f}", "rmse": "{:.1f}", "coverage": "{:.2f}", "order": "{:.2f}"}
        texts = ["/".join("-" if pd.isna(x) else form.format(x) for x in own[role]) for role, form in forms.items()]
        lines.append(
            "| " + " | ".join([str(keys[0]), *map(str, keys[2:]), f"{part['draws'].mean():.0f}", *texts]) + " |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("data", nargs="?", default="")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--slow", type=int, default=20, help="Repetitions of the estimators that take long.")
    parser.add_argument("--budgets", type=int, nargs="+", default=[50, 100, 200, 300, 500])
    parser.add_argument("--kinds", nargs="+", default=["fixed", "inverse", "uncapped", "roulette"])
    given = parser.parse_args()
    if given.folder is None:
        print(markdown())
        return
    ranks, levels = studies.load(given.folder)
    truth = np.array([[tr.values(one, metric).mean() for metric in METRICS] for one in ranks.values()])
    print(", ".join(ranks), truth.round(4).tolist(), flush=True)
    for plan in plans(ranks, levels, given.budgets, given.kinds):
        results = best_gamma(run(plan, ranks, truth, given.repetitions, given.slow), truth)
        found = [row for result in results for row in rows(result, truth, given.data)]
        add(found)
        columns = ["budget", "design", "estimator", "metric", "draws", "bias", "rmse", "coverage", "order"]
        print(pd.DataFrame(found)[columns].to_string(index=False, header=False), flush=True)


if __name__ == "__main__":
    main()
