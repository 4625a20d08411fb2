"""``cradle annotate``: from a folder of dialogues to gold labels, by the paper's procedure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from cradle_extras.label_studio.exports import IGNORED, read_exports
from cradle_extras.label_studio.interface import labelling_config
from cradle_extras.label_studio.study import Study, next_assignments, plan_study
from cradle_extras.label_studio.tasks import write_tasks
from cradle_lib import paths
from cradle_lib.annotation.adjudication import adjudicate as adjudicate_all
from cradle_lib.annotation.agreement import ALL_LABELS, agreement_frame
from cradle_lib.annotation.pairs import UNIT_NAMES, UNITS
from cradle_lib.annotation.protocol_warnings import protocol_warnings
from cradle_lib.annotation.table import read_annotations, write_annotations
from cradle_lib.cli import options as opt
from cradle_lib.cli.console import command, err, out, print_json, print_table
from cradle_lib.corpus import load_corpus
from cradle_lib.corpus.release import write_release
from cradle_lib.corpus.tables import check_ending, save_table
from cradle_lib.errors import CorpusError
from cradle_lib.files import write_text
from cradle_lib.scoring.output import json_rows
from cradle_lib.statistics.bootstrap import DRAWS

app = typer.Typer(
    help="Label dialogues: tasks, exports, agreement, gold labels.", no_args_is_help=True
)

StudyOption = Annotated[Path, typer.Option("--study", help="Folder of the study.")]
TableArgument = Annotated[
    Path, typer.Argument(help="The table that `cradle annotate import` wrote.")
]
_STUDY = Path("study")
_TABLE = _STUDY / "annotations.parquet"
_SHOWN_WARNINGS = 20


@app.command()
def export(
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    study: StudyOption = _STUDY,
    team: Annotated[
        list[str] | None, typer.Option(help="A team's two annotators, such as A,B; once per team.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 2,
    senior: Annotated[
        str, typer.Option(help="Name of the annotator who decides if there is no majority.")
    ] = "S",
    seed: Annotated[int, typer.Option(help="Seed of the assignment to teams and rounds.")] = 0,
    after: Annotated[
        Path | None, typer.Option(help="Imported annotations, to write the next stage's tasks.")
    ] = None,
) -> None:
    """Write the interface and the tasks of a study, or those of its next stage."""
    loaded = load_corpus(corpus, split)
    plan_file, tasks = study / "study.json", study / "tasks"
    if after is None:
        if plan_file.exists():
            raise CorpusError(
                f"{paths.shown(plan_file)} exists: a study is planned once. Give "
                "`--after TABLE` for its next stage, or another `--study`."
            )
        names = {
            str(i): [name.strip() for name in one.split(",")]
            for i, one in enumerate(team or ["A,B", "C,D"], 1)
        }
        plan = plan_study(loaded, names, rounds=rounds, senior=senior.strip(), seed=seed)
        new = plan.assignments
    else:
        plan = Study.load(plan_file)
        plan.check(loaded)
        new = next_assignments(plan, read_annotations(after, loaded))
        plan = plan.with_assignments(new)
        if not new:
            out.print("No dialogue is left to label.")
            words = ["adjudicate", str(after), "--corpus", corpus, "--split", split]
            out.print(f"Next: {command('annotate', *words, '--out', 'gold.parquet')}")
            return
    written = write_tasks(plan, loaded, tasks, new)
    write_text(study / "interface.xml", labelling_config())
    plan.save(plan_file)
    out.print(f"Labelling configuration: {paths.shown(study / 'interface.xml')}")
    for path in written:
        out.print(f"Tasks for one project: {paths.shown(path)}")


@app.command("import")
def import_(
    exports: Annotated[list[Path], typer.Argument(help="JSON exports of all projects.")],
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    study: StudyOption = _STUDY,
    until: Annotated[
        int | None, typer.Option("--until-round", min=1, help="Expect only the first rounds.")
    ] = None,
    table: Annotated[
        Path | None, typer.Option("--out", help="Table to write; default: in the study's folder.")
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Check Label Studio's exports and read them into one table."""
    target = table if table is not None else study / "annotations.parquet"
    check_ending(target)
    loaded = load_corpus(corpus, split)
    plan = Study.load(study / "study.json")
    expected = plan if until is None else plan.until(until)
    notes: Counter[str] = Counter()
    annotations = read_exports(exports, expected, loaded, notes)
    write_annotations(annotations, target)
    form = "dialogue {dialogue}, annotator {annotator}, turn {turn}: {message}"
    ignored = {what: notes[what] for what in IGNORED if notes[what]}
    found = [f"{count:,} {what}" for what, count in notes.items() if what not in IGNORED]
    found += [form.format_map(row) for row in protocol_warnings(annotations).to_dict("records")]
    if as_json:
        content = {"annotations": len(annotations.entries), "table": str(target)}
        print_json({**content, "ignored": ignored, "warnings": found})
        return
    for warning in found[:_SHOWN_WARNINGS]:
        err.print(f"warning: {warning}")
    if len(found) > _SHOWN_WARNINGS:
        err.print(f"warning: and {len(found) - _SHOWN_WARNINGS} more departures from the protocol")
    for what, count in ignored.items():
        err.print(f"ignored: {count:,} {what}")
    out.print(f"{len(annotations.entries):,} annotations: {paths.shown(target)}")


@app.command()
def agreement(
    table: TableArgument = _TABLE,
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    units: Annotated[str, typer.Option(help=f"Turns to compare: {', '.join(UNITS)}.")] = "labelled",
    draws: opt.Draws = DRAWS,
    seed: opt.DrawsSeed = 0,
    as_json: opt.Json = False,
) -> None:
    """Measure the agreement between the two annotators of each team."""
    chosen = opt.one_of(units, UNITS, "unit set")
    annotations = read_annotations(table, load_corpus(corpus, split))
    found = agreement_frame(annotations, units=[chosen], draws=draws, seed=seed)
    if as_json:
        print_json(json_rows(found))
        return
    found["group"] = "team " + found["team"] + ", round " + found["round"].astype(str)
    counts = found.groupby("group", sort=False)[["annotators", "dialogues", "turns"]].first().T
    overall, f1 = found["label"] == ALL_LABELS, found["measure"] == "f1"
    measures = _by_group(found[overall], "measure", _measure)
    measures.index = measures.index.str.replace("_", " ")
    shown = pd.concat([counts, measures]).rename_axis("measure").reset_index()
    title = f"Agreement on {UNIT_NAMES[chosen]}, with 95 % intervals"
    print_table(shown, title, right=counts.columns)
    labels = _by_group(found[f1 & ~overall], "label", _f1)
    title = "F1 of each label, and how often both, only the first and only the second gave it"
    print_table(labels.reset_index(), title, right=counts.columns)


def _by_group(found: pd.DataFrame, index: str, cell: Callable[[Any], str]) -> pd.DataFrame:
    """Pivots a frame: a row for each value of ``index``, a column for each group."""
    cells = found.assign(cell=[cell(row) for row in found.itertuples()])
    return cells.astype({index: str}).set_index([index, "group"])["cell"].unstack(sort=False)


def _measure(row: Any) -> str:
    bounds = "" if math.isnan(row.low) else f" [{row.low:.2f}, {row.high:.2f}]"
    return "-" if math.isnan(row.value) else f"{row.value:.3f}{bounds}"


def _f1(row: Any) -> str:
    value = "-" if math.isnan(row.value) else f"{row.value:.2f}"
    return f"{value} ({row.both}/{row.one}/{row.other})"


@app.command()
def adjudicate(
    gold: Annotated[Path, typer.Option("--out", help="Gold corpus to write: .parquet or .csv.")],
    table: TableArgument = _TABLE,
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    audit: Annotated[
        Path | None, typer.Option(help="Audit trail to write: .csv or .parquet.")
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Decide every label and write the gold corpus in the release's format."""
    for written in (gold, audit):
        if written is not None:
            check_ending(written)
    result = adjudicate_all(read_annotations(table, load_corpus(corpus, split)))
    write_release(result.corpus(), gold)
    if audit is not None:
        save_table(result.audit(), audit)
    if as_json:
        print_json({"outcomes": result.counts, "gold": str(gold)})
        return
    counts = pd.DataFrame(result.counts.items(), columns=["outcome", "dialogues"])
    print_table(counts, "Outcomes of the dialogues")
    if audit is not None:
        out.print(f"Audit trail: {paths.shown(audit)}")
    out.print(f"Gold: {paths.shown(gold)}")
