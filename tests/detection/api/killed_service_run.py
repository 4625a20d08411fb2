"""Runs against a service that can be killed at any moment; a process of its own for the tests.

Reads one JSON line per run from standard input: ``url`` and ``folder``, and ``command`` for
a run through the command line. Each run is forked off, so that it starts in no time; its
process id is printed when it begins, and its exit status when it has ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from cradle_lib import cli, paths, record
from cradle_lib.cli.commands import runs
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection import Model, Options, registry
from cradle_lib.detection.run import run

CORPUS = Corpus(
    "tiny",
    tuple(
        Dialogue(index, tuple(Turn(row, row, "User", f"text {index} {row}", 0) for row in range(8)))
        for index in range(40)
    ),
)
TURNS = 40 * 8


def make_model(url: str) -> Model:
    fields = {"max_new_tokens": 8, "temperature": 0.0}
    return Model.model_validate(
        {
            "id": "served",
            "name": "Served",
            "group": "open",
            "engine": "openai",
            "weights": "m",
            "prompt": "append",
            "decoding": fields,
            "base_url": url,
        }
    )


def start(order: dict[str, Any]) -> None:
    model = make_model(order["url"])
    if "command" not in order:
        run(model, CORPUS, out=Path(order["folder"]), options=Options(concurrency=6))
        return
    registry.load_registry = lambda: {"served": model}  # type: ignore[assignment]
    runs.load_corpus = lambda *_: CORPUS  # type: ignore[assignment]
    sys.argv = ["cradle", "infer", "--model", "served", "--out", order["folder"]]
    cli.main()


def main() -> None:
    # A short template, so that the service has little to read, and no questions to git.
    paths.PROMPTS = Path(sys.argv[1])
    record.commit = lambda: ("unknown", False)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            # Standard output is for the two numbers.
            os.dup2(2, 1)
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                start(json.loads(line))
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    import openai  # noqa: F401  # loaded once, before the first fork

    main()
