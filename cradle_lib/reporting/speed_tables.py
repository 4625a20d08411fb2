"""What inference costs: measured by ``make bench``, and calculated for a machine that is not here.

A calculated number is marked as such in the caption of its table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.cost.arithmetic import (
    H200,
    QWEN3_32B,
    Cost,
    Decoder,
    Machine,
    lanes,
    one_by_one,
    waves,
    workload,
)
from cradle_lib.detection.journal import read_journal
from cradle_lib.detection.registry import find_model, load_registry
from cradle_lib.detection.runs import find_journal, infer_command
from cradle_lib.errors import BookError, compose
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import (
    MISSING,
    Cell,
    Column,
    Row,
    Table,
    count,
    decimal,
    percent,
    text,
)

# What the numbers in a file of results are about.
_CAPTIONS: Final = {
    "inference": "the wave engine against other ways to ask the same model the same questions",
    "ablation": "the wave engine with and without each of its mechanisms",
    "services": "asking a service on this machine that takes a fifth of a second for each answer",
}


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    ratio: float | None = None
    target: float | None = None
    turns_per_second: float | None = None
    peak_mb: float | None = None
    same_answers: float | None = None
    note: str = ""


class _Measured(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    machine: str | dict[str, str | int | float | bool | None] = ""
    rows: tuple[_Line, ...]
    caveat: str = ""


def bench_table(what: str = "inference", folder: Path = paths.BENCH_RESULTS) -> Table | Notice:
    """Shows what ``make bench`` measured.

    Args:
        what: ``inference`` (ways to ask one model on this machine), ``ablation`` (what each
            mechanism of the wave engine is worth) or ``services`` (how fast questions go out).
        folder: Where it writes a file of that name with rows with ``name``, ``ratio``, ``target``,
            ``turns_per_second``, ``peak_mb``, ``same_answers`` and ``note``, of which only the
            name must be there, a ``machine``, and a ``caveat`` if the figures need one.

    Returns:
        One row for each comparison; or a notice if nothing has been measured.

    Raises:
        BookError: If the file can't be read as that.
        KeyError: If nothing of that name is measured.
    """
    caption, path = _CAPTIONS[what], folder / f"{what}.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = _Measured.model_validate(
            {"rows": content} if isinstance(content, list) else content
        )
    except FileNotFoundError:
        return Notice(
            f"Nothing has been measured here: there is no {paths.shown(path)}. "
            "Make it with `make bench`."
        )
    except (ValueError, ValidationError, OSError) as error:
        problem = " ".join(str(error).split())[:160]
        raise BookError(compose(problem, path=path, hint="Make it anew: `make bench`.")) from None
    rows = [
        Row(
            (
                text(line.name),
                decimal(line.ratio),
                decimal(line.target),
                text(_verdict(line)),
                decimal(line.turns_per_second),
                count(None if line.peak_mb is None else round(line.peak_mb)),
                percent(line.same_answers),
                text(line.note or MISSING),
            )
        )
        for line in found.rows
    ]
    return Table(
        f"Measured: {caption}.",
        (
            Column("Against", "text"),
            Column("Ratio"),
            Column("At least"),
            Column("Reached", "text"),
            Column("Turns per second"),
            Column("Peak memory (MB)"),
            Column("Same answers (%)"),
            Column("Made of", "text"),
        ),
        tuple(rows),
        tuple(filter(None, (_machine(found.machine), found.caveat))),
    )


def arithmetic_table(
    corpus: Corpus,
    model: str,
    *,
    decoder: Decoder = QWEN3_32B,
    machine: Machine = H200,
) -> Table | Notice:
    """Calculates what a large model would take for the questions of a run that was made.

    Args:
        corpus: The corpus of the run.
        model: Id in the registry of a model that was run with the wave engine: its journal gives
            the token counts.
        decoder: The large model.
        machine: Where it would run.

    Returns:
        One row for each way; or a notice if there is no journal.

    Raises:
        CradleError: If there is no such model, or its journal does not count tokens.
    """
    entry = find_model(model, load_registry())
    path = find_journal(entry, corpus)
    if path is None:
        return Notice(
            f"Nothing to calculate with: {entry.name} has not been run over {corpus.name}. "
            f"Run `{infer_command(entry, corpus)}`."
        )
    work = workload(read_journal(path)[1])
    wave = lanes(work, decoder, machine)
    slow, quick = one_by_one(work, decoder, machine), waves(work, decoder, machine, wave)
    return Table(
        f"Calculated, not measured: {decoder.name} in bfloat16 on {machine.name}, over the "
        f"{len(work.prompt):,} user turns of {work.dialogues} dialogues.",
        (
            Column("Way", "text"),
            Column("Tokens computed"),
            Column("Operations (10^15)"),
            Column("Bytes read (10^12)"),
            Column("Memory held (10^9 bytes)"),
            Column("Forward passes"),
            Column("Hours"),
        ),
        (
            _cost_row("One prompt at a time", slow),
            _cost_row(f"Waves of {wave}", quick),
            Row(
                (
                    text("Ratio"),
                    decimal(slow.tokens / quick.tokens, 1),
                    decimal(slow.operations / quick.operations, 1),
                    decimal(slow.read / quick.read, 1),
                    decimal(slow.memory / quick.memory, 1),
                    decimal(slow.passes / quick.passes, 1),
                    decimal(slow.seconds / quick.seconds, 1),
                )
            ),
        ),
        (
            f"Token counts are those in the journal of {entry.name}, by its own tokenizer: "
            f"{int(work.prompt.sum()):,} of prompts, {int(work.answer.sum()):,} of answers; "
            f"{work.prefix:,} tokens are the same in every prompt.",
            "Time is that of arithmetic and memory alone. What a real run spends on anything else "
            "comes on top, for both ways.",
        ),
    )


def assumption_table(decoder: Decoder = QWEN3_32B, machine: Machine = H200) -> Table:
    """Shows every number that a calculation starts from."""
    shape = (
        ("Layers", count(decoder.layers)),
        ("Hidden size", count(decoder.hidden)),
        ("Query heads", count(decoder.heads)),
        ("Key and value heads", count(decoder.key_heads)),
        ("Size of a head", count(decoder.head_size)),
        ("Intermediate size", count(decoder.intermediate)),
        ("Vocabulary", count(decoder.vocabulary)),
        (
            "Parameters (10^9), from these",
            decimal(decoder.weight_bytes / decoder.bytes_each / 1e9, 1),
        ),
        ("Bytes of weights (10^9), from these", decimal(decoder.weight_bytes / 1e9, 1)),
        ("Bytes of keys and values per token, from these", count(decoder.token_bytes)),
    )
    place = (
        ("Operations per second (10^12), bfloat16, dense", decimal(machine.rate / 1e12, 0)),
        ("Share of them assumed to be reached (%)", percent(machine.rate_share, digits=0)),
        ("Bytes per second from memory (10^12)", decimal(machine.bandwidth / 1e12, 1)),
        ("Share of them assumed to be reached (%)", percent(machine.bandwidth_share, digits=0)),
        ("Bytes of memory (10^9)", decimal(machine.memory / 1e9, 0)),
        ("Share of it that may be filled (%)", percent(machine.memory_share, digits=0)),
    )
    return Table(
        f"What the calculation starts from: {decoder.name} and {machine.name}.",
        (Column("Quantity", "text"), Column("Value")),
        tuple(
            Row((text(title), cell), group=group)
            for group, lines in ((decoder.name, shape), (machine.name, place))
            for title, cell in lines
        ),
    )


def _cost_row(title: str, cost: Cost) -> Row:
    return Row(
        (
            text(title),
            count(cost.tokens),
            decimal(cost.operations / 1e15, 1),
            decimal(cost.read / 1e12, 1),
            decimal(cost.memory / 1e9, 1),
            count(round(cost.passes)),
            Cell(f"{cost.seconds / 3600:.3g}", value=cost.seconds / 3600),
        )
    )


def _verdict(line: _Line) -> str:
    if line.ratio is None or line.target is None:
        return MISSING
    return "yes" if line.ratio >= line.target else "no"


def _machine(machine: str | dict[str, str | int | float | bool | None]) -> str:
    if isinstance(machine, dict):
        machine = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in machine.items())
    return f"Machine: {machine or 'not described'}."
