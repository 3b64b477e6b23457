"""``truerank sample``: sampled ranks, drawn from exact ones."""

from __future__ import annotations

import click

from truerank.cli import options
from truerank.cli.output import describe_and_write
from truerank.core import InputError

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
    "'inverse(2, 300)' with at most 300 draws, or head-first@10 in a random order.",
)
@options.seed_option("the sample")
@options.output_option(".parquet or .npz", more=", and {name} stands for the name of each file")
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
    from truerank.sampling.designs import UniformSampling, as_design

    outputs = _outputs(sources, output)
    if design is not None and (m is not None or replace):
        raise InputError("give either --design, or -m and --replace, not both.")
    chosen = UniformSampling(m or _DEFAULT, replace) if design is None else as_design(design)
    ranks = options.read_all(sources)
    sampled = {name: chosen.draw(one, rng=rng) for name, one in ranks.items()}
    for name, one in sampled.items():
        describe_and_write(one, outputs[name], one.save)


def _outputs(sources: dict[str, str], output: str) -> dict[str, str]:
    """Return the path to write for each recommender."""
    from truerank.formats.rank_files import check_path

    if len(sources) > 1 and _NAME not in output:
        raise InputError(f"--output must contain {_NAME} to write {len(sources)} files, got {output!r}.")
    outputs = {name: output.replace(_NAME, name) for name in sources}
    for path in outputs.values():
        check_path(path)
        options.check_output(path, *sources.values())
    return outputs
