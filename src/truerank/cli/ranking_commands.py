"""``truerank rank``, ``recommend`` and ``sample``: ranks and recommended lists, written to files."""

from typing import Any, cast

import click

import truerank as tr
from truerank.cli import options
from truerank.cli.output import describe_and_write, show_notes, show_table


@click.command()
@options.factors_option("; on Spark Parquet with ids and arrays")
@options.bias_option
@options.names_option
@options.model_option
@options.path_option("--train", help="Training pairs (user_id, item_id); they are not candidates.")
@options.path_option("--test", required=True, help="Held-out pairs (user_id, item_id).")
@options.formats_option("train", "test")
@options.candidates_options
@click.option(
    "--depth", type=int, metavar="K", help="Compute ranks down to K only: enough for metrics @K, several times faster."
)
@options.ranks_output_option
@options.threads_option
@options.resume_option
@options.choice_option(
    "--engine", ["local", "spark"], "Where to rank; Spark takes its master and configuration from its own environment."
)
def rank(
    factors: tuple[str, str] | None,
    bias: str | None,
    names: tuple[str, str] | None,
    model: str | None,
    train: str | None,
    test: str,
    formats: dict[str, Any],
    candidates: str | None,
    exclude: str | None,
    unknown: Any,
    depth: int | None,
    output: str,
    threads: int | None,
    resume: bool,
    engine: str,
) -> None:
    """Rank held-out items exactly, among the whole catalogue.

    With --factors, users and items in the files of pairs are row numbers, from 0, or with --names the
    names of the rows; with --model they are the names that the model was trained with.

    \b
    truerank rank --factors users.npy items.npy --train train.tsv --test test.tsv -o ranks.parquet
    truerank rank --model ials.npz --train train.csv --test test.csv --unknown last -o ranks.parquet
    truerank evaluate ranks.parquet -m ndcg@10 -m auc
    """
    options.check_output(output, *(factors or ()), bias, *(names or ()), model, train, test, candidates, exclude)
    _check_scorer(factors, model, bias=bias, names=names)
    if engine == "spark":
        from truerank.engines.spark_ranks import rank_files

        local = {"names": names, "model": model, "resume": resume or None, "formats": formats or None}
        limits = {"depth": depth, "candidates": candidates, "exclude": exclude}
        _refuse_local_options(threads=threads, bias=bias, **limits, **local)
        ranks = rank_files(cast("tuple[str, str]", factors), train, test)
        describe_and_write(ranks, output, ranks.save)
        return
    with options.resuming(output, resume) as folder:
        pairs = {"train": train, "test": test}
        scorer, seen, held = (
            _read_model(str(model), formats, **pairs)
            if factors is None
            else _read_factors(factors, bias, names, formats, **pairs)
        )
        chosen = {"candidates": candidates, "exclude": exclude, "unknown": unknown, "depth": depth}
        ranks = tr.rank(scorer, train=seen, test=held, **chosen, threads=threads, progress=True, checkpoint=folder)
        describe_and_write(ranks, output, ranks.save)


def _refuse_local_options(**given: Any) -> None:
    reasons = {
        "resume": "Spark repeats lost tasks itself",
        "threads": "Spark uses the cores of its executors",
        "bias": "on Spark add it to the factors, with a 1 for every user",
        "candidates": "on Spark all items are candidates",
        "exclude": "on Spark all items are candidates",
        "depth": "on Spark ranks are always known to the end",
        "formats": "Spark reads Parquet",
        "names": "on Spark the factors have their own ids",
        "model": "Spark reads factors",
    }
    for name, reason in reasons.items():
        if given[name] is not None:
            raise tr.InputError(f"`{name}` is for the local engine; {reason}.")


def _check_scorer(factors: Any, model: str | None, **for_factors: Any) -> None:
    if (factors is None) == (model is None):
        raise tr.InputError("give either --factors or --model.")
    for name, given in for_factors.items():
        if given is not None and factors is None:
            raise tr.InputError(f"--{name} applies only to --factors.")


def _read_factors(
    factors: tuple[str, str], bias: str | None, names: tuple[str, str] | None, formats: dict[str, Any], **pairs: Any
) -> Any:
    """Return a scorer from files of factors, and the contents of each file of pairs, numbered like the factors."""
    from truerank.data.event_files import read_pairs
    from truerank.formats.sources import load_array

    users, items = map(load_array, factors)
    scorer: Any = tr.Factors(users, items, None if bias is None else load_array(bias))
    shape = (scorer.n_users, scorer.n_items)
    if names is not None:
        scorer = scorer.named(*(options.read_names(path, n) for path, n in zip(names, shape, strict=True)))
    ids = {"user_ids": scorer.user_ids, "item_ids": scorer.item_ids}
    given = [(path, formats.get(name)) for name, path in pairs.items()]
    read = [None if path is None else read_pairs(path, shape, format=form, **ids) for path, form in given]
    show_notes(note for part in read if part is not None for note in part.notes)
    return scorer, *read


def _read_model(model: str, formats: dict[str, Any], **pairs: str | None) -> Any:
    """Return a saved model, and the contents of each file of pairs, which share users and items."""
    from truerank.data.event_files import read_parts

    forms = {formats.get(name) for name, path in pairs.items() if path}
    if len(forms) > 1:
        raise tr.InputError("with --model all files of pairs must have the same format.")
    read = iter(read_parts([path for path in pairs.values() if path], {}, *forms))
    return tr.load_model(model), *(None if path is None else next(read) for path in pairs.values())


@click.command()
@options.factors_option()
@options.bias_option
@options.names_option
@options.model_option
@options.path_option("--train", help="Training pairs (user_id, item_id); they are not recommended.")
@options.formats_option("train")
@options.candidates_options
@options.whole_option("-k", default="10", show_default=True, help="Items per user.")
@options.output_option(
    ".csv, .tsv, .jsonl, .parquet, .trec or .run", callback=options.writable("recommending.recommendations")
)
@options.threads_option
@options.resume_option
def recommend(
    factors: tuple[str, str] | None,
    bias: str | None,
    names: tuple[str, str] | None,
    model: str | None,
    train: str | None,
    formats: dict[str, Any],
    candidates: str | None,
    exclude: str | None,
    unknown: Any,
    k: int,
    output: str,
    threads: int | None,
    resume: bool,
) -> None:
    """List the k best items of each user.

    With --factors, users and items in the file of pairs are row numbers, from 0, or with --names the
    names of the rows; with --model they are the names that the model was trained with. Of equal
    scores, the item with the lower number comes first.

    \b
    truerank recommend --factors users.npy items.npy --train train.tsv -k 20 -o lists.parquet
    truerank recommend --model ials.npz --train train.csv -o lists.trec
    truerank evaluate lists.trec --truth test.tsv -m ndcg@10
    """
    options.check_output(output, *(factors or ()), bias, *(names or ()), model, train, candidates, exclude)
    _check_scorer(factors, model, bias=bias, names=names)
    if factors is None:
        scorer = tr.load_model(str(model))
        seen = None if train is None else tr.read_interactions(train, format=formats.get("train"))
    else:
        scorer, seen = _read_factors(factors, bias, names, formats, train=train)
    with options.resuming(output, resume) as folder:
        chosen = {"candidates": candidates, "exclude": exclude, "unknown": unknown}
        lists = tr.recommend(scorer, train=seen, k=k, **chosen, threads=threads, progress=True, checkpoint=folder)
        describe_and_write(lists, output, lists.write)


_NAME = "{name}"
_SAMPLED = 100


@click.command()
@options.sources_argument("RANKS")
@options.whole_option("-m", metavar="M", help="Candidates to sample uniformly; 100 if no design is given.")
@click.option("--replace", is_flag=True, help="Sample with replacement.")
@click.option(
    "--design",
    metavar="DESIGN",
    help="How to sample, instead of -m: for instance 'inverse(2)', drawn until 2 stand above each relevant item, "
    "'inverse(2, 300)' with at most 300 draws, or head-first@10 in a random order.",
)
@options.seed_option("the sample")
@options.output_option(".parquet or .npz", more=", and {name} stands for the name of each file")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Write nothing; show how many scores it takes to rank like this, and how well ndcg@10 will be known.",
)
def sample(
    sources: dict[str, str],
    m: int | None,
    replace: bool,
    design: str | None,
    rng: int | None,
    output: str,
    dry_run: bool,
) -> None:
    """Draw sampled ranks from exact ones, by their exact distribution.

    \b
    truerank sample ranks.parquet -m 100 --seed 1 -o sampled.parquet
    truerank correct sampled.parquet -m 'recall@10~bv(0.1)' -m recall@10~cls
    truerank sample ranks.parquet --design 'inverse(2)' --seed 1 -o inverse.parquet
    truerank sample als=a.parquet bpr=b.parquet -m 100 --seed 1 -o sampled-{name}.parquet
    truerank sample pilot.parquet --design 'inverse(2)' -o inverse.parquet --dry-run
    """
    from truerank.sampling.designs import as_design

    outputs = _outputs(sources, output)
    if design is not None and (m is not None or replace):
        raise tr.InputError("give either --design, or -m and --replace, not both.")
    chosen = tr.UniformSampling(m or _SAMPLED, replace) if design is None else as_design(design)
    ranks = options.read_all(sources)
    if dry_run:
        for name, one in ranks.items():
            click.echo(f"{name}:")
            show_table(tr.plan_scores(chosen, like=one), "table")
        return
    sampled = {name: chosen.draw(one, rng=rng) for name, one in ranks.items()}
    for name, one in sampled.items():
        describe_and_write(one, outputs[name], one.save)


def _outputs(sources: dict[str, str], output: str) -> dict[str, str]:
    """Return the path to write for each recommender."""
    from truerank.formats.rank_files import check_path

    if len(sources) > 1 and _NAME not in output:
        raise tr.InputError(f"--output must contain {_NAME} to write {len(sources)} files, got {output!r}.")
    outputs = {name: output.replace(_NAME, name) for name in sources}
    for path in outputs.values():
        check_path(path)
        options.check_output(path, *sources.values())
    return outputs
