"""Commands for the written dialogues: checks, and the answers of blind readers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cradle_lib import evaluate, load_corpus, run_model
from cradle_lib.errors import CradleError
from tools.surrogate.build import build_surrogate
from tools.surrogate.dialogue_files import Fault, Written, check_file, file_paths
from tools.surrogate.measures import Measure, measure
from tools.surrogate.readings import READINGS, measure_readings, report

#: Examples printed below a measure that misses its target.
EXAMPLES: Final = 12


def run(arguments: Sequence[str]) -> int:
    """Runs a command.

    Returns:
        0 if all is well, 1 if ``check`` found a fault or a missed target, 2 for an error.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.surrogate")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="check files and measure their text")
    check.add_argument("files", nargs="*", type=Path, help="default: all files")
    readings = commands.add_parser("readings", help="compare readers' answers with the plans")
    readings.add_argument("files", nargs="*", type=Path, help="default: all answers")
    given = parser.parse_args(arguments)
    try:
        if given.command == "readings":
            lines = report(given.files or sorted(READINGS.glob("*.jsonl")))
            print("\n".join(lines))  # noqa: T201
            return 0
        return _check(given.files or file_paths(), whole=not given.files)
    except CradleError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2


def _check(files: Sequence[Path], *, whole: bool) -> int:
    dialogues: list[Written] = []
    faults: list[Fault] = []
    for path in files:
        found, wrong = check_file(path)
        dialogues += found
        faults += wrong
    faulty = {fault.dialogue for fault in faults}
    sound = [dialogue for dialogue in dialogues if dialogue.id not in faulty]
    lines = [f"FAULT {fault}" for fault in faults]
    lines.append(
        f"{len(files)} files, {len(dialogues)} dialogues, {len(faults)} faults; "
        f"the measures are of {len(sound)} dialogues without a fault"
    )
    measures = measure(sound) if sound else []
    if whole and not faults:
        measures += [*measure_readings(), *_baselines()]
    for one in measures:
        lines.append(_measure_line(one))
        if not one.met:
            lines += [f"        {example}" for example in one.examples[:EXAMPLES]]
            hidden = len(one.examples) - EXAMPLES
            lines += [f"        and {hidden} more"] if hidden > 0 else []
    print("\n".join(lines))  # noqa: T201
    return int(bool(faults) or not all(one.met for one in measures))


def _baselines() -> Iterator[Measure]:
    """Scores two baselines on test; TF-IDF learns from train."""
    with TemporaryDirectory() as folder:
        build_surrogate(Path(folder))
        test = load_corpus(Path(folder) / "test.parquet")
        for model, low in (("keyword", 0), ("tfidf", 15)):
            score = evaluate(run_model(model, test), draws=0).estimate("micro_f1")
            yield Measure(f"{model}: micro F1 on test", 100 * float(score.value), low, 30)


def _measure_line(one: Measure) -> str:
    decimals = 3 if 0 < one.high < 1 else 1
    if one.high == float("inf"):
        target = f"at least {one.low:g}"
    else:
        target = f"{one.low:g} to {one.high:g}" if one.low else f"at most {one.high:g}"
    return f"{'ok' if one.met else 'MISSED':<7} {one.name:<44}{one.value:>9.{decimals}f}   {target}"
