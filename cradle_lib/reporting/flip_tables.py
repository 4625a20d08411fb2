"""Two runs side by side: what they were, what they said, and what it took."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.journal import read_journal
from cradle_lib.detection.journal_paths import journal_path
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.registry import find_model, load_registry
from cradle_lib.detection.runs import find_journal, infer_command
from cradle_lib.detection.session import Prediction
from cradle_lib.record import Record
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import (
    MISSING,
    Column,
    Row,
    Table,
    count,
    decimal,
    percent,
    text,
)
from cradle_lib.scoring.comparison.run_agreement import TEXTS, Flips, flips

_TEXT_NAMES = {
    "identical": "The same raw text",
    "beginning": "One raw text is the beginning of the other",
    "same line": "Another raw text after the same first line",
    "different": "Another first line",
}
_LONGEST: Final = 26
# What can make two runs differ, in the order shown.
_FIELDS = (
    "name",
    "engine",
    "weights",
    "revision",
    "prompt",
    "prompt_hash",
    "history",
    "corpus",
    "corpus_fingerprint",
    "started",
    "version",
    "commit",
    "dirty",
    "python",
    "platform",
    "threads",
)


@dataclass(frozen=True)
class StoredRun:
    """A journal as it stands.

    Attributes:
        record: Its record.
        predictions: What was answered, by dialogue and turn.
    """

    record: Record
    predictions: list[Prediction]


def journal_pair(first: str, second: str, corpus: Corpus) -> tuple[StoredRun, StoredRun] | Notice:
    """Finds two runs to be compared, finished or not.

    Args:
        first: Id in the registry, or the path of a journal (its name ends with ``.jsonl``).
        second: Likewise.
        corpus: The corpus that a model named by its id was run over.

    Returns:
        Both, or a notice that names the journals that are not there.

    Raises:
        CradleError: If there is no such model, or a journal can't be read.
    """
    places = {name: _place(name, corpus) for name in (first, second)}
    missing = [name for name, place in places.items() if not place.exists()]
    if missing:
        names = " and ".join(paths.shown(places[name]) for name in missing)
        registry = load_registry()
        commands = " and ".join(
            f"`{infer_command(registry[name], corpus)}`" for name in missing if name in registry
        )
        advice = f" Make it with {commands}." if commands else ""
        return Notice(f"Nothing to compare yet: there is no journal {names}.{advice}")
    one, two = (StoredRun(*read_journal(places[name])) for name in (first, second))
    return one, two


def flip_tables(pair: tuple[StoredRun, StoredRun] | Notice) -> list[Table | Notice]:
    """Shows how two runs agree, what they took, and what they were.

    Args:
        pair: What :func:`journal_pair` found.

    Returns:
        Three tables; or the notice alone.

    Raises:
        ScoringError: If they have no user turn in common.
    """
    if isinstance(pair, Notice):
        return [pair]
    found = flips(pair[0].predictions, pair[1].predictions)
    return [_agreement(pair, found), _usage(pair, found), _records(pair)]


def _place(name: str, corpus: Corpus) -> Path:
    if name.endswith(".jsonl"):
        return paths.ROOT / name
    entry = find_model(name, load_registry())
    return find_journal(entry, corpus) or journal_path(entry, corpus, out=paths.SHIPPED_RUNS)


def _agreement(pair: tuple[StoredRun, StoredRun], found: Flips) -> Table:
    one, two = ({(p.dialogue, p.turn): p.outcome for p in run.predictions} for run in pair)
    unread = sum(Outcome.OK not in (one[turn], two[turn]) for turn in one.keys() & two.keys())

    def line(title: str, number: int, of: int) -> Row:
        return Row((text(title), count(number), count(of), percent(number / of)))

    def flipped(title: str, number: int, of: int, rate: tuple[float, float, float]) -> Row:
        share, low, high = rate
        return Row((text(title), count(number), count(of), percent(share, (low, high), digits=2)))

    turns = found.turns
    return Table(
        "Agreement of the two runs, turn by turn, with 95 % intervals of the flips.",
        (Column("What", "text"), Column("Number"), Column("Of"), Column("Share (%)")),
        (
            line("Asked the same question", found.same_question, turns),
            *(line(_TEXT_NAMES[kind], found.texts[kind], turns) for kind in TEXTS),
            line("The same outcome", found.outcomes, turns),
            line("The same tags", found.tags, turns),
            line("Neither answer can be read", unread, turns),
            flipped("Turns that flipped", len(found.flipped), turns, found.turn_rate),
            flipped(
                "Dialogues with a flip", found.flipped_dialogues, found.dialogues,
                found.dialogue_rate,
            ),
        ),
        (
            "A flip is a turn whose tags or outcome differ. Intervals are exact (Clopper and "
            "Pearson); after no flip at all the upper bound is that of the rule of three, about "
            "three over the number. The one over dialogues is the one to believe, because turns "
            "of a dialogue depend on each other.",
        ),
    )  # fmt: skip


def _usage(pair: tuple[StoredRun, StoredRun], found: Flips) -> Table:
    rows = []
    for run, used in zip(pair, found.usage, strict=True):
        computed = (
            None
            if used.tokens_in is None or used.tokens_cached is None
            else used.tokens_in - used.tokens_cached
        )
        rows.append(
            Row(
                (
                    text(f"{run.record.name} ({run.record.engine} engine)"),
                    count(used.tokens_in),
                    count(computed),
                    count(used.tokens_out),
                    decimal(used.seconds / found.turns, 3),
                )
            )
        )
    return Table(
        f"What the two runs computed for the {found.turns:,} turns that both answered.",
        (
            Column("Run", "text"),
            Column("Prompt tokens"),
            Column("Prompt tokens computed"),
            Column("Answer tokens"),
            Column("Seconds per turn"),
        ),
        tuple(rows),
        (
            "Seconds are those in the journals, each on the machine and under the load of its own "
            "run; where many dialogues share a forward pass, each bears its tokens' share.",
        ),
    )


def _records(pair: tuple[StoredRun, StoredRun]) -> Table:
    sides = [_described(run.record) for run in pair]
    names = list(dict.fromkeys([*sides[0], *sides[1]]))
    rows = []
    for name in names:
        one, two = (side.get(name, MISSING) for side in sides)
        rows.append(
            Row((text(name), text(one), text(two), text("same" if one == two else "differs")))
        )
    return Table(
        "The records of the two runs side by side.",
        (
            Column("Field", "text"),
            Column("First run", "text"),
            Column("Second run", "text"),
            Column("Same?", "text"),
        ),
        tuple(rows),
    )


def _described(record: Record) -> dict[str, str]:
    fields = record.model_dump()
    shown = {name: _plain(fields[name]) for name in _FIELDS if name in fields}
    settings = (f"{name} {value}" for name, value in record.decoding.items())
    shown["decoding"] = ", ".join(settings) or MISSING
    chosen = record.dialogues
    shown["dialogues"] = "all" if chosen is None else f"{len(chosen)} chosen"
    return {name.replace("_", " "): value for name, value in shown.items()} | {
        f"package {name}": version for name, version in record.packages.items()
    }


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return MISSING
    text = str(value)
    # A checksum as long as this would push the other run out of sight.
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
