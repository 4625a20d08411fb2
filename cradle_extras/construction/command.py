"""``cradle construct``: writes dialogues with a language model, and checks them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cradle_extras.construction import check_dialogues, construct
from cradle_extras.construction.plan import KINDS
from cradle_extras.construction.writer import writer_model
from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.console import out, print_json, print_table
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.corpus import load_corpus
from cradle_lib.scoring.output import json_rows

app = typer.Typer(
    help="Make dialogues from posts, and check them.",
    no_args_is_help=True,
)

KindOption = Annotated[
    str,
    typer.Option(
        help="annotated (10 to 13 turns, no labels) or training (15 turns, labelled by the writer)."
    ),
]
AgainstOption = Annotated[
    list[str] | None,
    typer.Option(help="A corpus whose near-duplicates are rejected; may be given several times."),
]


@app.command()
def write(
    folder: Annotated[Path, typer.Option("--out", help="Output folder.")],
    writer: Annotated[
        str,
        typer.Option(help="An id in models.yml, or openai:NAME, anthropic:NAME, hf:ORG/NAME."),
    ],
    posts: Annotated[
        Path | None,
        typer.Option(
            help="CSV, JSON lines or parquet with id, title, text, labels; default: the shipped "
            "posts."
        ),
    ] = None,
    kind: KindOption = "training",
    given: opt.Set = None,
    against: AgainstOption = None,
    max_cost: opt.MaxCost = None,
    yes: opt.Yes = False,
    as_json: opt.Json = False,
) -> None:
    """Write, validate and repair dialogues. Stopped or killed, the same command resumes.

    Every plan ends accepted, rejected or failed. The exit status is 0 if all are accepted, else 1.
    """
    chosen = opt.one_of(kind, KINDS, "kind")
    settings, options = opt.split_settings(given)
    model = writer_model(writer, **settings)
    others = [load_corpus(name) for name in against or ()]
    with RunBar(writer, "dialogues", yes=yes) as bar:
        options = replace(options, progress=bar.show, consent=bar.agree, max_cost=max_cost)
        made = construct(model, folder, posts=posts, kind=chosen, against=others, options=options)
    findings, rejected = made.findings(), made.counts["accepted"] < len(made.outcomes)
    if as_json:
        content = {"plans": len(made.outcomes), "counts": dict(made.counts)}
        print_json(content | {"findings": json_rows(findings)})
    else:
        summary = ", ".join(f"{number:,} {status}" for status, number in made.counts.items())
        out.print(f"{len(made.outcomes):,} plans: {summary}.")
        if len(findings):
            counts = findings.groupby(["validator", "severity"])["dialogue"].nunique()
            counts = counts.rename("dialogues").sort_values(ascending=False)
            print_table(counts.reset_index(), "Found in any attempt")
        if rejected:
            out.print("The same command with --json lists every finding of each dialogue.")
        if made.counts["accepted"]:
            out.print(f"Corpus: {paths.shown(folder / 'corpus.parquet')}")
    if rejected:
        raise typer.Exit(1)


@app.command()
def check(
    corpus: Annotated[
        str, typer.Argument(help="surrogate, hub, or a file in the release's format.")
    ],
    kind: KindOption = "training",
    against: AgainstOption = None,
    as_json: opt.Json = False,
) -> None:
    """Run the validators over a corpus. The exit status is 1 if one of them rejects a dialogue."""
    loaded = load_corpus(corpus)
    others = [load_corpus(name) for name in against or ()]
    chosen = opt.one_of(kind, KINDS, "kind")
    table = check_dialogues(loaded, chosen, against=others)
    if as_json:
        content = {"corpus": loaded.name, "dialogues": len(loaded), "validators": json_rows(table)}
        print_json(content | {"findings": table.attrs["findings"]})
    else:
        print_table(table.drop(columns="share"), f"{loaded.name}: {len(loaded):,} dialogues")
        if table["found"].any():
            out.print("The same command with --json lists every finding of each dialogue.")
    if table.loc[table["severity"] == "reject", "found"].sum():
        raise typer.Exit(1)
