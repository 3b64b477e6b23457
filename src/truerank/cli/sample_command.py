"""``truerank sample``: sampled ranks, drawn from exact ones."""

from __future__ import annotations

import click

from truerank.cli import options
from truerank.cli.output import save_ranks
from truerank.errors import InputError

_NAME = "{name}"


@click.command()
@options.sources_argument("RANKS")
@click.option(
    "-m", "m", metavar="M", callback=options.whole(), default="100", show_default=True, help="Candidates to sample."
)
@click.option("--replace", is_flag=True, help="Sample with replacement.")
@click.option("--seed", "rng", metavar="N", callback=options.read_seed, help="Seed of the sample.")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    type=click.Path(),
    help="The .parquet or .npz file to write; - is standard output, and {name} stands for the name of each file.",
)
def command(sources: dict[str, str], m: int, replace: bool, rng: int | None, output: str) -> None:
    """Draw sampled ranks from exact ones, by their exact distribution.

    \b
    truerank sample ranks.parquet -m 100 --seed 1 -o sampled.parquet
    truerank sample als=a.parquet bpr=b.parquet -m 100 --seed 1 -o sampled-{name}.parquet
    truerank correct sampled.parquet -m 'recall@10~bv(0.1)' -m recall@10~cls
    """
    from truerank.ranking.tables import read_ranks
    from truerank.sampling.uniform import UniformSampling

    outputs = _outputs(sources, output)
    design = UniformSampling(m, replace)
    ranks = {name: read_ranks(path) for name, path in sources.items()}
    sampled = {name: design.draw(one, rng=rng) for name, one in ranks.items()}
    for name, one in sampled.items():
        save_ranks(one, outputs[name])


def _outputs(sources: dict[str, str], output: str) -> dict[str, str]:
    """Return the path to write for each recommender."""
    from truerank.ranking.files import check_path

    if len(sources) > 1 and _NAME not in output:
        raise InputError(f"--output must contain {_NAME} to write {len(sources)} files, got {output!r}.")
    outputs = {name: output.replace(_NAME, name) for name in sources}
    for path in outputs.values():
        check_path(path)
    return outputs
