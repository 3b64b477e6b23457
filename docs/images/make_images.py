"""Draw the figures of the documentation: ``python docs/images/make_images.py`` (needs matplotlib)."""

from pathlib import Path

import truerank as tr
from truerank.papers.krichene_rendle_2020.toy import RANKS
from truerank.report import drawing


@drawing.styled
def sampled_against_exact() -> None:
    """Draw the expected sampled AP of the toy example at every sample size: the order depends on m."""
    found = tr.consistency(RANKS, "ap", sizes=range(1, 10_000))
    figure, (axes,) = drawing.panels(1, columns=1)
    drawing.curves(axes, found.sizes, {f"recommender {name}": curve for name, curve in found.curves.items()})
    for (colour, _), mean in zip(drawing.LOOKS, found.exact.values(), strict=False):
        axes.plot([10_000], [mean], "o", color=colour, clip_on=False)
    axes.set(xscale="log", yscale="log", xlim=(1, 10_000), xlabel="sampled candidates m (of 10,000)")
    axes.set_ylabel("expected average precision")
    drawing.mark(axes, 100, "the usual 100:\nC, the best, looks worst", words_left=False)
    axes.annotate("exact", (10_000, 0.101), (6_300, 0.062), color="0.3")
    axes.legend(loc="lower left")
    drawing.save(figure, Path(__file__).parent, "sampled-ap")


if __name__ == "__main__":
    sampled_against_exact()
