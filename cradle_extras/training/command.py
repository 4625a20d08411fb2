"""``cradle train``: fine-tunes a model on a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cradle_extras.training.recipe import recipe_names
from cradle_extras.training.train import train_model
from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.console import command, err, out, print_json
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Progress
from cradle_lib.errors import CorpusError, EngineError


def train(
    base: Annotated[str, typer.Option(help="Base model: an id in models.yml, or hf:ORG/NAME.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for checkpoints and the result.")],
    corpus: opt.Corpus = "surrogate",
    dev: Annotated[
        Path | None, typer.Option(help="The dev split, if the corpus is a file.")
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="The test split, if the corpus is a file; checked for shared dialogues."),
    ] = None,
    recipe: Annotated[
        str, typer.Option(help=f"{', '.join(recipe_names())}, or a YAML file.")
    ] = "lora",
    shared: Annotated[
        bool, typer.Option("--shared", help="Train even if splits share dialogues.")
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Train a model on a corpus. Stopped or killed, the same command resumes."""
    learned = load_corpus(corpus, "train")
    splits = [_split(corpus, name, path) for name, path in (("dev", dev), ("test", test))]
    with RunBar("training", "steps", yes=True) as bar:
        trained = train_model(
            base,
            learned,
            folder,
            recipe=recipe,
            dev=splits[0],
            test=splits[1],
            shared=shared,
            progress=lambda step, steps, _: bar.show(Progress(step, steps, 0)),
            notice=err.print,
        )
    record = trained.record
    if as_json:
        print_json({"folder": str(trained.folder), **record.model_dump()})
        return
    if not record.dev:
        err.print("No dev split: the last checkpoint is kept.")
    out.print(f"{paths.shown(trained.folder)}: step {record.chosen}, {record.hours:.2f} hours")
    words = ["--model", f"hf:{trained.model.weights}", "--set", f"prompt={record.recipe.prompt}"]
    # A file may be the train split only: which other file is to be predicted, is not known.
    target = str(test or ("FILE" if Path(corpus).suffix else corpus))
    if target != "surrogate":
        words += ["--corpus", target]
    out.print(command("infer", *words))


def _split(corpus: str, name: str, path: Path | None) -> Corpus | None:
    """Loads a held-out split; for a corpus that is a file, only if its path is given."""
    if path is not None:
        return load_corpus(path)
    if Path(corpus).suffix:
        return None
    try:
        return load_corpus(corpus, name)
    except CorpusError as error:
        raise EngineError(f"{corpus} has no {name} split to compare with: {error}") from error
