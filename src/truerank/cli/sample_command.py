"""``truerank sample``: sampled ranks, drawn from exact ones."""

from __future__ import annotations

import click

from truerank.cli import options
from truerank.cli.output import describe_and_write
from truerank.cli.sources import check_output
from truerank.errors import InputError

_NAME = "{name}"
_DEFAULT = 100


@click.command()
@options.sources_argument("RANKS")
@click.option(
    "-m", "m", metavar="M", callback=options.whole(), help="Candidates to sample uniformly; 100 if no design is given."
)
@click.option("--replace", is_flag=True, help="Sample with replacement.")
@click.option(
    "--design",
    metavar="DESIGN",
    help="How to sample, instead of -m: for instance 'inverse(2)', drawn until 2 stand above each relevant item, "
    "'inverse(2, 300)' with at most 300 draws, or 'roulette(100)@10' and head-first@10 in a random order.",
)
@click.option("--seed", "rng", metavar="N", callback=options.read_seed, help="Seed of the sample.")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    type=click.Path(),
    help="The .parquet or .npz file to write; - is standard output, and {name} stands for the name of each file.",
)
def command(
    sources: dict[str, str], m: int | None, replace: bool, design: str | None, rng: int | None, output: str
) -> None:
    """Draw sampled ranks from exact ones, by their exact distribution.

    \b
    truerank sample ranks.parquet -m 100 --seed 1 -o sampled.parquet
    truerank correct sampled.parquet -m 'recall@10~bv(0.1)' -m recall@10~cls
    truerank sample ranks.parquet --design 'inverse(2)' --seed 1 -o inverse.parquet
    truerank sample als=a.parquet bpr=b.parquet -m 100 --seed 1 -o sampled-{name}.parquet
    """
    from truerank.ranking.tables import read_ranks
    from truerank.sampling.registry import as_design

    outputs = _outputs(sources, output)
    chosen = as_design(design, m=_DEFAULT if design is None and m is None else m, replace=replace)
    ranks = {name: read_ranks(path) for name, path in sources.items()}
    sampled = {name: chosen.draw(places, rng=rng) for name, places in ranks.items()}
    for name, places in sampled.items():
        describe_and_write(places, outputs[name], places.save)


def _outputs(sources: dict[str, str], output: str) -> dict[str, str]:
    """Return the path to write for each recommender."""
    from truerank.ranking.files import check_path

    if len(sources) > 1 and _NAME not in output:
        raise InputError(f"--output must contain {_NAME} to write {len(sources)} files, got {output!r}.")
    outputs = {name: output.replace(_NAME, name) for name in sources}
    for path in outputs.values():
        check_path(path)
        check_output(path, *sources.values())
    return outputs
