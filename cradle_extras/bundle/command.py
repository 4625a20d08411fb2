"""``cradle bundle``, ``verify`` and ``score BUNDLE``: results that others can check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from cradle_extras.bundle.bundle import bundle as write_bundle
from cradle_extras.bundle.bundle import load_bundle
from cradle_extras.bundle.verify import Verification
from cradle_extras.bundle.verify import verify as derive
from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.commands.score import in_percent, show_predicted
from cradle_lib.cli.console import err, interval_note, out, print_json, print_table
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.corpus.needs import unmet
from cradle_lib.detection import Predictions
from cradle_lib.scoring.conventions import Level
from cradle_lib.scoring.evaluate import Evaluation
from cradle_lib.scoring.output import level_scores
from cradle_lib.statistics.bootstrap import DRAWS


def bundle(
    journal: Annotated[Path, typer.Argument(help="A finished run's journal.")],
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    file: Annotated[
        Path | None,
        typer.Option("--out", help="Archive to write; default: MODEL.CORPUS.zip in this folder."),
    ] = None,
    convention: opt.Convention = None,
    draws: opt.Draws = DRAWS,
    seed: opt.DrawsSeed = 0,
    as_json: opt.Json = False,
) -> None:
    """Write a run, its scores and checksums to one zip archive, for others to check."""
    loaded = load_corpus(corpus, split)
    target = file if file is not None else Path(f"{journal.stem}.{loaded.name}.zip")
    conventions = opt.parse_conventions(convention)
    run = write_bundle(
        journal,
        loaded,
        target,
        conventions=conventions,
        draws=draws,
        seed=seed,
        report=err.print,
    )
    size = target.stat().st_size
    if as_json:
        counts = {"dialogues": len(run.corpus), "turns": len(run.masks), "bytes": size}
        print_json({**counts, "bundle": str(target)})
    else:
        out.print(f"Bundle: {paths.shown(target)} ({size:,} bytes)")
        out.print(f"{run.coverage}. Others check it with `cradle verify {target.name}`.")
    if not loaded.synthetic:
        err.print("It contains no dialogues, but answers may quote them: read before sharing.")


def verify(
    file: Annotated[Path, typer.Argument(help="A bundle that `cradle bundle` made.")],
    corpus: Annotated[
        str | None,
        typer.Option(help="Corpus of the run; default: the corpus that its record names."),
    ] = None,
    split: opt.Split = "test",
    as_json: opt.Json = False,
) -> None:
    """Recompute a bundle's questions and scores, and report every mismatch.

    The exit status is 0 if everything matches, and 1 if something does not. A different version of
    this library alone is reported, and is not a failure.
    """
    found = derive(file, load_corpus(corpus, split) if corpus is not None else None)
    if as_json:
        content = {
            "bundle": str(found.path),
            "sha256": found.checksum,
            "holds": found.holds,
            "questions_derived": found.turns,
            "findings": [asdict(finding) for finding in found.findings],
        }
        print_json(content)
    else:
        _show(found)
    if not found.holds:
        raise typer.Exit(1)


def score_bundles(
    bundles: Sequence[Path],
    corpus: Corpus,
    score_levels: Callable[[Predictions], Mapping[Level, Evaluation]],
    *,
    partial: bool,
    as_json: bool,
) -> None:
    """Prints the scores of several bundles in one table, a row for each."""
    runs = [load_bundle(path, corpus, partial=partial) for path in bundles]
    results = [score_levels(run) for run in runs]
    # Conventions may score labels outside user turns.
    if (no_labels := unmet(corpus, "labels")) and results[0]["turn"].undefined_because:
        show_predicted(runs, f"{no_labels}: there is nothing to score against.", as_json=as_json)
        return
    if as_json:
        content = [
            {"bundle": str(path), "run": run.record.name, "levels": level_scores(found)}
            for path, run, found in zip(bundles, runs, results, strict=True)
        ]
        print_json({"bundles": content})
        return
    rows = []
    for path, run, found in zip(bundles, runs, results, strict=True):
        row = {"run": run.record.name, "bundle": path.name}
        for level, evaluation in found.items():
            row[f"{level}, micro"] = in_percent(evaluation, "micro_f1")
        rows.append(row)
    right = [name for name in rows[0] if "micro" in name]
    print_table(rows, "F1 in percent", interval_note(rows), right=right)
    signatures = [found["turn"].signature for found in results]
    for path, signature in zip(bundles, signatures, strict=True):
        out.print(f"{path.name}: {signature}")
    if len({replace(signature, decoding="") for signature in signatures}) > 1:
        out.print("Compare only rows whose signatures are equal, except for `dec`.")
    out.print("`cradle verify` checks that a bundle's answers and scores belong together.")


def _show(found: Verification) -> None:
    out.print(f"{paths.shown(found.path)}: sha256 {found.checksum}")
    if found.record is not None:
        out.print(
            f"{found.record.name} over {found.record.corpus}, version {found.record.version}: "
            f"{found.turns:,} questions derived."
        )
    for finding in found.findings:
        out.print(f"{finding.kind}: {finding.about}")
    if found.holds:
        out.print("Everything else matches." if found.findings else "Everything matches.")
    else:
        out.print(f"The bundle does not match: {len(found.findings):,} differences.")
