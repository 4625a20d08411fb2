"""``cradle data``: check, fetch and build corpora."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cradle_lib import corpus as corpora
from cradle_lib import paths
from cradle_lib.cli.console import out
from cradle_lib.corpus import surrogate

app = typer.Typer(help="Check, fetch and build corpora.", no_args_is_help=True)


@app.command()
def check(
    path: Annotated[str, typer.Argument(help="A file in the release's format, or a corpus' name.")],
) -> None:
    """Compare a corpus with the published counts of the test split.

    Exits 1 if a corpus that claims to be the test split (its name says so) differs.
    """
    corpus = corpora.load_corpus(path)
    claims = corpora.is_test_split(corpus)
    table = Table(title=f"{corpus.name} ({corpus.fingerprint})")
    table.add_column("count")
    table.add_column("found", justify="right")
    table.add_column("published", justify="right")
    table.add_column("")
    checks = corpora.check_counts(corpus)
    for item in checks:
        verdict = "equal" if item.equal else f"differs by {item.found - item.published:+,}"
        table.add_row(item.name, f"{item.found:,}", f"{item.published:,}", verdict)
    out.print(table)
    differing = [item.name for item in checks if not item.equal]
    if not differing:
        out.print("All counts are those of the published test split.")
    elif claims:
        out.print(f"Not the published test split: {len(differing)} counts differ.")
        raise typer.Exit(1)
    else:
        out.print("Published counts are those of the test split; this corpus is another one.")


@app.command()
def fetch(
    revision: Annotated[
        str | None, typer.Option(help="Commit of the data set; default: the one fetched before.")
    ] = None,
) -> None:
    """Download the real release into data/release, which git ignores."""
    commit = corpora.fetch_release(revision=revision)
    out.print(f"Fetched the release at {commit} into {paths.shown(paths.RELEASE)}.")
    out.print("Its data card names no licence: keep it on this machine.")
    check("hub")


@app.command("build-surrogate")
def build_surrogate(
    folder: Annotated[Path, typer.Argument(help="Where to write it.")] = paths.SURROGATE,
) -> None:
    """Rebuild the surrogate corpus from its phrase bank, bit for bit."""
    surrogate.build_surrogate(folder)
    out.print(f"Wrote the surrogate corpus to {paths.shown(folder)}.")
