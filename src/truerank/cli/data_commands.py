"""``truerank data``: public data sets from their publishers."""

import click

DATA_SETS = tuple(f"movielens-{size}" for size in ("100k", "1m", "10m", "20m", "25m", "32m"))


@click.command()
@click.argument("name", metavar="DATA", type=click.Choice(DATA_SETS))
@click.option("--to", "folder", required=True, metavar="DIR", type=click.Path(), help="Directory to put it into.")
@click.option("--from", "site", metavar="URL", help="A mirror to use instead of GroupLens' own site.")
def data(name: str, folder: str, site: str | None) -> None:
    """Download MovieLens from its publisher, resuming an interrupted download, and verify its checksum.

    DATA is movielens-100k, or -1m, -10m, -20m, -25m, -32m. The zip file is kept as published:
    read_interactions reads it. GroupLens' terms of use, in the README inside, forbid redistribution.

    \b
    truerank data movielens-1m --to data
    """
    from truerank.data.downloads import SITE, download
    from truerank.formats.writing import check_writable_folder

    check_writable_folder(folder)
    path = download(name, folder, site=site or SITE, progress=True)
    click.echo(f"{path} is complete; read it in Python with tr.read_interactions({str(path)!r})")
