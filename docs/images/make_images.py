"""Draw the pictures of the documentation: ``python docs/images/make_images.py`` (needs matplotlib)."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

import truerank as tr
from truerank.papers.krichene_rendle_2020.toy import RANKS

STYLES = {"A": ("#1b6ca8", "-"), "B": ("#d1495b", "--"), "C": ("#2e7d32", "-.")}


def sampled_against_exact() -> None:
    """Expected sampled AP of the toy example at every sample size: the order depends on m."""
    found = tr.consistency(RANKS, "ap", sizes=range(1, 10_000))
    plt.rcParams["svg.hashsalt"] = "truerank"
    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for name, (colour, line) in STYLES.items():
        axes.plot(found.sizes, found.curves[name], line, color=colour, lw=2, label=f"recommender {name}")
        axes.plot([10_000], [found.exact[name]], "o", color=colour, clip_on=False)
    axes.set(xscale="log", yscale="log", xlim=(1, 10_000), xlabel="sampled candidates m (of 10,000)")
    axes.set_ylabel("expected average precision")
    axes.axvline(100, color="0.6", lw=1, ls=":")
    axes.annotate("the usual 100:\nC, the best, looks worst", (100, 0.012), (115, 0.011), fontsize=9, color="0.3")
    axes.annotate("exact", (10_000, 0.101), (6_300, 0.062), fontsize=9, color="0.3")
    axes.legend(frameon=False, loc="lower left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).parent / "sampled-ap.svg", metadata={"Date": None})


if __name__ == "__main__":
    sampled_against_exact()
