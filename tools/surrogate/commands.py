"""Commands for the written dialogues: skeletons, checks and blind readings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cradle_lib import evaluate, load_corpus, paths, run_model
from cradle_lib.errors import CradleError
from tools.surrogate.build import build_surrogate
from tools.surrogate.dialogue_files import Fault, Written, check_file, file_paths, skeleton
from tools.surrogate.measures import Measure, doubts, measure
from tools.surrogate.plans import SPLITS
from tools.surrogate.readings import READINGS, Text, collect, hint_texts, report, sheet_texts

#: Examples printed below a measure that misses its target.
EXAMPLES: Final = 12


def run(arguments: Sequence[str]) -> int:
    """Runs a command.

    Returns:
        0 if all is well, 1 if ``check`` found a fault or a missed target, 2 for an error.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.surrogate")
    commands = parser.add_subparsers(dest="command", required=True)
    outline = commands.add_parser("skeleton", help="print the skeleton of a file")
    outline.add_argument("split", choices=SPLITS)
    outline.add_argument("number", type=int, help="number of the file, from 0")
    check = commands.add_parser("check", help="check files and measure their text")
    check.add_argument("files", nargs="*", type=Path, help="default: all files")
    check.add_argument("--partial", action="store_true", help="accept missing or empty dialogues")
    sheet = commands.add_parser("sheet", help="print a sheet for a blind reader")
    answers = commands.add_parser("collect", help="check a reader's answers and keep them")
    answers.add_argument("answers", type=Path)
    for command in (sheet, answers):
        command.add_argument("split", choices=SPLITS)
        command.add_argument("number", type=int, help="number of the sheet, from 0")
        command.add_argument("--anchors", type=Path, help="real and stitched dialogues to mix in")
        command.add_argument("--hints", action="store_true", help="only beginnings, to an alert")
    answers.add_argument("reader", help="letter of the reader")
    readings = commands.add_parser("readings", help="compare readers' answers with the plans")
    readings.add_argument("files", nargs="*", type=Path, help="default: all answers")
    given = parser.parse_args(arguments)
    try:
        if given.command == "skeleton":
            print(skeleton(given.split, given.number), end="")  # noqa: T201
        elif given.command == "sheet":
            print("\n\n".join(map(str, _texts(given))))  # noqa: T201
        elif given.command == "collect":
            name = f"{given.split}-{given.number:02}-{given.reader}{'-hints' * given.hints}"
            kept = collect(given.answers, _texts(given), name, hints=given.hints)
            print(paths.shown(kept))  # noqa: T201
        elif given.command == "readings":
            lines = report(given.files or sorted(READINGS.glob("*.jsonl")))
            print("\n".join(lines))  # noqa: T201
        else:
            files = given.files or file_paths()
            if given.partial and not given.files:
                files = [path for path in files if path.exists()]
            whole = not given.files and not given.partial
            return _check(files, partial=given.partial, whole=whole)
    except CradleError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    return 0


def _texts(given: argparse.Namespace) -> list[Text]:
    if given.hints:
        return hint_texts(given.split, given.number)
    return sheet_texts(given.split, given.number, given.anchors)


def _check(files: Sequence[Path], *, partial: bool, whole: bool) -> int:
    dialogues: list[Written] = []
    faults: list[Fault] = []
    for path in files:
        found, wrong = check_file(path, partial=partial)
        dialogues += found
        faults += wrong
    faulty = {fault.dialogue for fault in faults}
    sound = [dialogue for dialogue in dialogues if dialogue.id not in faulty]
    lines = [f"FAULT {fault}" for fault in faults]
    lines += [f"look at {doubt}" for doubt in doubts(sound)]
    lines.append(
        f"{len(files)} files, {len(dialogues)} dialogues, {len(faults)} faults; "
        f"the measures are of {len(sound)} dialogues without a fault"
    )
    measures = measure(sound) if sound else []
    if whole and not faults:
        measures.append(_tfidf())
    for one in measures:
        lines.append(_measure_line(one))
        if not one.met:
            lines += [f"        {example}" for example in one.examples[:EXAMPLES]]
            hidden = len(one.examples) - EXAMPLES
            lines += [f"        and {hidden} more"] if hidden > 0 else []
    print("\n".join(lines))  # noqa: T201
    return int(bool(faults) or not all(one.met for one in measures))


def _tfidf() -> Measure:
    """Scores the TF-IDF baseline, which learns from train, on test."""
    with TemporaryDirectory() as folder:
        build_surrogate(Path(folder))
        test = load_corpus(Path(folder) / "test.parquet")
        score = evaluate(run_model("tfidf", test), draws=0).estimate("micro_f1")
    return Measure("TF-IDF: micro F1 on test", 100 * float(score.value), 15, 30)


def _measure_line(one: Measure) -> str:
    decimals = 3 if 0 < one.high < 1 else 1
    if one.high == float("inf"):
        target = f"at least {one.low:g}"
    else:
        target = f"{one.low:g} to {one.high:g}" if one.low else f"at most {one.high:g}"
    return f"{'ok' if one.met else 'MISSED':<7} {one.name:<44}{one.value:>9.{decimals}f}   {target}"
