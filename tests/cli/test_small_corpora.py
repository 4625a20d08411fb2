"""Commands on a corpus of one dialogue: a result, without warnings, tracebacks or NaN."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ..notebooks.tiny_corpora import write
from .conftest import Cradle


def test_every_command_ends_with_a_result_or_one_line(tmp_path: Path, cradle: Cradle) -> None:
    corpus = write("one dialogue", tmp_path)
    journals = [tmp_path / corpus.stem / f"{model}.jsonl" for model in ("keyword", "always-none")]
    over = ("--corpus", corpus)
    commands: list[tuple[str | Path, ...]] = [
        ("data", "check", corpus),
        ("estimate", "--model", "gpt-5.1", *over),
        *(("infer", "--model", path.stem, *over, "--out", tmp_path) for path in journals),
        ("score", journals[0], *over, "--draws", "50"),
        ("score", journals[0], *over, "--draws", "50", "--json"),
        ("compare", *journals, *over, "--permutations", "50"),
        ("compare", *journals, *over, "--permutations", "50", "--json"),
    ]
    for command in commands:
        done = cradle(*command)
        assert (done.returncode, done.stderr.strip()) == (0, ""), command
        assert not re.search(r"\bnan\b|\binf\b|NaN|Infinity", done.stdout), command
        if "--json" in command:
            json.loads(done.stdout)
