"""A run with a service, in a process that the tests kill. Arguments: address and output folder.

It uses ``cradle infer``, so that the command's handling of Ctrl-C is tested, too.
"""

from __future__ import annotations

import signal
import sys

from cradle_lib import cli
from cradle_lib.cli.commands import runs
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection import Model
from cradle_lib.detection.models import registry

CORPUS = Corpus(
    "tiny",
    tuple(
        Dialogue(index, tuple(Turn(row, row, "User", f"text {index} {row}", 0) for row in range(5)))
        for index in range(6)
    ),
)
TURNS = 6 * 5


def make_model(url: str) -> Model:
    fields = {"id": "served", "name": "Served", "group": "open", "engine": "openai"}
    return Model.model_validate(fields | {"weights": "m", "prompt": "append", "base_url": url})


def main(url: str, folder: str) -> None:
    model = make_model(url)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    registry.load_registry = lambda: {"served": model}  # type: ignore[assignment]
    runs.load_corpus = lambda *_: CORPUS  # type: ignore[assignment]
    sys.argv = ["cradle", "infer", "--model", "served", "--out", folder]
    cli.main()


if __name__ == "__main__":
    main(*sys.argv[1:])
