"""``cradle construct``: have dialogues written, and check them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import pandas as pd
import typer

from cradle_extras import construction
from cradle_extras.construction import Construction, Kind, Posts
from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.console import out, print_json, print_table
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import Model
from cradle_lib.scoring.output import json_rows

app = typer.Typer(
    help="Make dialogues from posts, and check them.",
    no_args_is_help=True,
)

PostsOption = Annotated[
    Path | None,
    typer.Option(
        "--posts",
        help="CSV, JSON lines or parquet with id, title, text, labels; default: those that ship.",
    ),
]
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
    posts: PostsOption = None,
    kind: KindOption = "training",
    writer: Annotated[
        str,
        typer.Option(
            help="phrase-bank, an id in models.yml, or openai:NAME, anthropic:NAME, hf:ORG/NAME."
        ),
    ] = construction.PHRASE_BANK,
    given: opt.Set = None,
    against: AgainstOption = None,
    max_cost: opt.MaxCost = None,
    yes: opt.Yes = False,
    as_json: opt.Json = False,
) -> None:
    """Write, validate and repair dialogues. Stopped or killed, the same command resumes.

    Every plan ends accepted, rejected or failed. The exit status is 0 if all are accepted, else 1.
    """
    found, chosen = _posts(posts), _kind(kind)
    settings, options = opt.split_settings(given)
    model: str | Model = writer
    if writer != construction.PHRASE_BANK:
        model = construction.writer_model(writer, **settings)
    others = [load_corpus(name) for name in against or ()]
    with RunBar(writer, "dialogues", yes=yes) as bar:
        made = construction.construct(
            found,
            chosen,
            model,
            against=others,
            out=folder,
            options=options,
            progress=bar.show,
            consent=bar.agree,
            max_cost=max_cost,
        )
    if as_json:
        content = {"plans": len(made.outcomes), "counts": dict(made.counts)}
        print_json(content | {"findings": json_rows(made.findings())})
    else:
        _show_outcomes(made, folder)
    if made.counts["accepted"] < len(made.outcomes):
        raise typer.Exit(1)


@app.command()
def check(
    corpus: Annotated[str, typer.Argument(help="A file in the release's format, or a name.")],
    kind: KindOption = "training",
    against: AgainstOption = None,
    words: Annotated[
        bool, typer.Option("--words", help="List every finding, with the validator's words.")
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Run the validators over a corpus. The exit status is 1 if one of them rejects a dialogue."""
    loaded = load_corpus(corpus)
    others = [load_corpus(name) for name in against or ()]
    table = construction.check_dialogues(loaded, _kind(kind), against=others)
    if as_json:
        content = {"corpus": loaded.name, "dialogues": len(loaded), "validators": json_rows(table)}
        print_json(content | {"findings": table.attrs["findings"]})
    else:
        print_table(table.drop(columns="share"), f"{loaded.name}: {len(loaded):,} dialogues")
        if words:
            print_table(pd.DataFrame(table.attrs["findings"]), "Findings")
    if table.loc[table["severity"] == "reject", "found"].sum():
        raise typer.Exit(1)


def _posts(path: Path | None) -> Posts:
    return construction.load_posts() if path is None else construction.load_posts(path)


def _kind(name: str) -> Kind:
    return opt.one_of(name, get_args(Kind), "kind")


def _show_outcomes(made: Construction, folder: Path) -> None:
    summary = ", ".join(f"{number:,} {status}" for status, number in made.counts.items())
    out.print(f"{len(made.outcomes):,} plans: {summary}.")
    findings = made.findings()
    if len(findings):
        columns = ["validator", "severity"]
        counts = findings.groupby(columns)["dialogue"].nunique().rename("dialogues")
        print_table(counts.sort_values(ascending=False).reset_index(), "Found in any attempt")
    if made.counts["accepted"] < len(made.outcomes):
        out.print("The same command with --json lists every finding of each dialogue.")
    if made.counts["accepted"]:
        out.print(f"Corpus: {paths.shown(folder / 'corpus.parquet')}")
