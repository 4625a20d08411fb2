"""``cradle data``: check, convert and fetch corpora."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cradle_lib import corpus as corpora
from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.console import command, err, out, print_json, print_table
from cradle_lib.corpus.hub import release_file
from cradle_lib.errors import CradleError, printable

app = typer.Typer(help="Check, convert and fetch corpora.", no_args_is_help=True)


@app.command()
def check(
    path: Annotated[str, typer.Argument(help="surrogate, hub, or a file in the release's format.")],
    paper: Annotated[
        bool, typer.Option("--paper", help="Compare with the published counts of the test split.")
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Count the contents of a corpus and point out oddities.

    The test splits of the release and of the surrogate are compared with the paper's counts; the
    exit status is 1 if one differs.
    """
    corpus = corpora.load_corpus(path)
    checks, quirks = corpora.check_counts(corpus), corpora.find_quirks(corpus)
    differing = [item for item in checks if not item.equal]
    paper = paper or not differing or corpus.name in ("surrogate-test", "hub-test")
    # The timing of the release's dialogues is that of their first label: empty if they have none.
    meta = {
        column: dict(sorted(Counter(value or "no label" for value in values).items()))
        for column, values in corpus.meta.items()
    }
    if as_json:
        content = {
            "corpus": corpus.name,
            "fingerprint": corpus.fingerprint,
            "counts": [asdict(item) | {"equal": item.equal} for item in checks],
            "meta": meta,
            "worth_a_look": quirks,
            "compared_with_the_paper": paper,
        }
        print_json(content)
    else:
        rows = [
            {"count": item.name, "found": item.found}
            | ({"published": item.published} if paper else {})
            for item in checks
        ]
        about = "`labels` counts all rows, single labels count user turns"
        print_table(rows, f"{corpus.name} ({corpus.fingerprint}); {about}")
        for column, counts in meta.items():
            shown = ", ".join(f"{value} {count:,}" for value, count in counts.items())
            out.print(f"Dialogues by {column}: {shown}.")
        for quirk in quirks:
            out.print(f"Worth a look: {quirk}.")
        for item in differing if paper else ():
            out.print(f"{item.name} differs by {item.found - item.published:+,}.")
        if not differing:
            out.print("All counts are those of the published test split.")
    if paper and differing:
        raise typer.Exit(1)


@app.command()
def convert(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Chat messages, a table with a speaker column, a messenger's export, a transcript "
            "(Name: text, blank lines between dialogues), or a folder of transcripts.",
        ),
    ],
    target: Annotated[Path, typer.Option("--out", help="File to write, .csv or .parquet.")] = Path(
        "corpus.csv"
    ),
    user: Annotated[
        list[str] | None, typer.Option(help="Name of the User in the file; may be repeated.")
    ] = None,
    listener: Annotated[
        list[str] | None, typer.Option(help="Name of the Listener; may be repeated.")
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(help="Speaker whose messages are left out, such as system; may be repeated."),
    ] = None,
    speaker: Annotated[str | None, typer.Option(help="Column that says who speaks.")] = None,
    text: Annotated[str | None, typer.Option(help="Column with the text.")] = None,
    dialogue: Annotated[
        str | None,
        typer.Option(help="Column with the dialogue's id, or `file` for one dialogue."),
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option(help="Column with labels; may be repeated.")
    ] = None,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Leave labels out.")] = False,
    messages: Annotated[
        str | None, typer.Option(help="Field with the list of messages, if there are several.")
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="Column that orders the messages, `file` for the order of the file, or `reversed`."
        ),
    ] = None,
    single: Annotated[
        bool, typer.Option("--single", help="Each row is one text of a User, such as a post.")
    ] = False,
    cumulative: Annotated[
        bool | None,
        typer.Option(
            "--cumulative/--no-cumulative",
            help="Whether each row repeats the turns before it, so that only what is new counts.",
        ),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of the file, such as windows-1252 or utf-16-le.")
    ] = None,
    consecutive: Annotated[
        str,
        typer.Option(help="Consecutive messages of one speaker: joined, or kept as turns."),
    ] = "joined",
) -> None:
    """Convert dialogues in another form into the release's format.

    Prints how the file was understood. A file is refused if speakers could be swapped or a label
    lost or moved; the message names the options to use.
    """
    if labels and no_labels:
        raise CradleError("--labels and --no-labels exclude each other.")
    found = corpora.convert(
        path,
        target,
        user=user or (),
        listener=listener or (),
        leave_out=leave_out or (),
        speaker=speaker,
        text=text,
        dialogue=dialogue,
        labels="none" if no_labels else labels,
        messages=messages,
        order=order,
        single=single,
        cumulative=cumulative,
        encoding=encoding,
        consecutive=consecutive,
    )
    rows = [{"found": name, "as": printable(phrase)} for name, phrase in found.understood.items()]
    print_table(rows, path.name)
    for quirk in corpora.find_quirks(found.corpus):
        out.print(f"Worth a look: {quirk}.")
    out.print(f"Written to {paths.shown(target)}.")
    out.print(f"Next: {command('infer', '--model', 'keyword', '--corpus', str(target))}")


@app.command()
def fetch(
    revision: Annotated[
        str | None, typer.Option(help="Commit of the data set; default: the one fetched before.")
    ] = None,
) -> None:
    """Download the real release into data/release, which git ignores.

    All splits are checked. A dialogue with a row that can't be used is left out and reported; the
    exit status is then 1.
    """
    left_out: list[str] = []
    commit = corpora.fetch_release(revision=revision, report=left_out.append)
    for line in left_out:
        err.print(f"left out: {line}")
    out.print(f"Fetched the release at {commit} into {paths.shown(paths.RELEASE)}.")
    out.print("Its data card names no licence: keep it on this machine.")
    for split in ("train", "dev"):
        if release_file(split).is_file():
            for quirk in corpora.find_quirks(corpora.load_corpus("hub", split)):
                out.print(f"Worth a look in {split}: {quirk}.")
    if release_file("test").is_file():
        check("hub")
    if left_out:
        raise typer.Exit(1)
