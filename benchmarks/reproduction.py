"""Where the time of the whole reproduction goes: ``python benchmarks/reproduction.py DIR``.

DIR holds the original files of MovieLens 1M, or train and test files. The steps are those of
``truerank reproduce krichene-rendle --data DIR``, each run once.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, TypeVar

from truerank.core.tables import aligned
from truerank.papers.krichene_rendle_2020 import movielens, toy_tables
from truerank.papers.krichene_rendle_2020 import reproduction as paper
from truerank.ranking.exact import rank
from truerank.report.plots import save

Result = TypeVar("Result")


class Clock:
    """Runs steps and records the wall-clock and CPU time of each."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float, float]] = []

    def run(self, name: str, step: Callable[..., Result], *args: Any) -> Result:
        wall, cpu = time.perf_counter(), time.process_time()
        result = step(*args)
        self.steps.append((name, time.perf_counter() - wall, time.process_time() - cpu))
        return result

    def __str__(self) -> str:
        wall, cpu = sum(step[1] for step in self.steps), sum(step[2] for step in self.steps)
        steps = [*self.steps, ("all", wall, cpu)]
        rows = [[name, f"{clock:.2f}", f"{own:.2f}", f"{clock / wall:.0%}"] for name, clock, own in steps]
        return aligned(["step", "seconds", "processor", "share"], rows)


def main(folder: str) -> None:
    clock = Clock()
    split = clock.run("read the split", movielens.load_split, folder)
    x = clock.run("train X, ten seeds", lambda: [recommender.fit(split.train) for recommender in movielens.X])
    y = clock.run("train Y", movielens.Y.fit, split.train)
    z = clock.run("train Z", movielens.Z.fit, split.train)
    ranks = clock.run("rank all of them", lambda: [rank(model, split) for model in (*x, y, z)])
    study = movielens.Study(tuple(ranks[:-2]), *ranks[-2:])
    clock.run("Tables 1 and 2", lambda: (toy_tables.table_1(), toy_tables.table_2()))
    repeated = clock.run("100 repetitions, all corrections", movielens.repeat, study)
    clock.run("Table 3, own n included", movielens.table_3, study, repeated)
    clock.run("Table 4", movielens.table_4, study, repeated)
    drawn = clock.run("Figures 1 to 6", lambda: list(paper.drawn_figures(study)))
    with tempfile.TemporaryDirectory() as target:
        clock.run("write them", lambda: [save(figure, target, str(at)) for at, (figure, _) in enumerate(drawn)])
    print(clock)


if __name__ == "__main__":
    main(sys.argv[1])
