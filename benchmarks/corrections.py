"""The cost of a correction: its growth with catalogue and sample size, and compared with the direct solution.

The direct solution builds the n x (m + 1) matrix of eq. 23 and solves eq. 25 with it. Both are timed in one run; the
table also shows how much their results differ. BLAS is limited to one thread: small systems are slower with several.

    python benchmarks/corrections.py [--repeats 3]
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from tests.sampling.terms import law_of

import truerank as tr
from truerank.core import caching
from truerank.core.checks import Floats

GAMMA = 0.01
TEXT = f"recall@10~bv({GAMMA:g})"


def ours(n: int, m: int, replace: bool) -> Floats:
    return tr.estimators.correction_table(TEXT, design=tr.UniformSampling(m, replace), n=n)


def direct(n: int, m: int, replace: bool) -> Floats:
    """Eq. 25 as printed, with every rank and a uniform prior."""
    law = law_of(replace).rows(np.arange(n), m, n - 1)
    exact = (np.arange(1, n + 1) <= 10).astype(np.float64)
    system = (1 - GAMMA) * law.T @ law
    system[np.diag_indices(m + 1)] += GAMMA * law.sum(axis=0)
    return np.asarray(np.linalg.solve(system, law.T @ exact), dtype=np.float64)


def best(function: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def exponent(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def show_against_direct(repeats: int) -> None:
    print(f"{TEXT}: ours against the direct n x m solution")
    print(f"{'n':>8} {'m':>5} {'replace':>8} {'ours, s':>9} {'direct, s':>10} {'direct / ours':>14} {'difference':>11}")
    for n, m in ((2_000, 100), (20_000, 100), (100_000, 100), (20_000, 300)):
        for replace in (False, True):
            fast = best(partial(ours, n, m, replace), repeats)
            slow = best(partial(direct, n, m, replace), repeats)
            gap = np.abs(ours(n, m, replace) - direct(n, m, replace)).max()
            print(f"{n:8} {m:5} {replace!s:>8} {fast:9.4f} {slow:10.4f} {slow / fast:14.1f} {gap:11.1e}")


def show_growth(repeats: int) -> None:
    print("\ngrowth of one table (seconds), and the exponent of the time in n and in m")
    sizes = [10**4, 10**5, 10**6, 10**7, 10**8, 10**9]
    in_n = [best(partial(ours, n, 100, False), repeats) for n in sizes]
    print("  m = 100, n = " + ", ".join(f"1e{round(np.log10(n))}: {t:.4f}" for n, t in zip(sizes, in_n, strict=True)))
    samples = [50, 100, 200, 400, 800]
    in_m = [best(partial(ours, 10**6, m, False), repeats) for m in samples]
    print("  n = 1e6, m = " + ", ".join(f"{m}: {t:.4f}" for m, t in zip(samples, in_m, strict=True)))
    print(f"  exponents: n {exponent(sizes, in_n):.2f}, m {exponent(samples, in_m):.2f}")


def show_many_sizes(repeats: int) -> None:
    print("\n6,040 instances with 1,500 different n, m = 100: values in seconds")
    rng = np.random.default_rng(0)
    exact = tr.Ranks.from_ranks(rng.integers(1, 1_000, 6_040), n=rng.integers(2_000, 3_500, 6_040))
    sampled = tr.UniformSampling(100).draw(exact, rng=1)
    for text in ("recall@10~bv(0.1)", "ap~bv(0.1)", "recall@10~cls"):
        caching.clear()
        start = time.perf_counter()
        tr.values(sampled, text)
        first = time.perf_counter() - start
        print(f"  {text:20} first {first:.3f}, again {best(partial(tr.values, sampled, text), repeats):.3f}")


def show_large() -> None:
    script = (
        "import re, time, truerank as tr\n"
        "def peak(): return int(re.search('VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024\n"
        "tr.estimators.correction_table('recall@10~bv(0.01)', design=10, n=1000)\n"
        "before = peak(); start = time.perf_counter()\n"
        "tr.estimators.correction_table('recall@10~bv(0.01)', design=1000, n=10**8)\n"
        "print(time.perf_counter() - start, peak(), before)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, peak, before = map(float, done.stdout.split())
    print(f"\nn = 1e8, m = 1,000: {seconds:.2f} s, peak {peak:.0f} MB for the whole process ({before:.0f} MB before)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    show_against_direct(repeats)
    show_growth(repeats)
    show_many_sizes(repeats)
    show_large()


if __name__ == "__main__":
    main()
