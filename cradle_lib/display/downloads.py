"""Reports as files that are part of the page: JSON with its schema."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass

from cradle_lib.detection.journals.predictions import Predictions
from cradle_lib.display import export
from cradle_lib.scoring.core.report import report, report_schema
from cradle_lib.statistics.bootstrap import DRAWS


@dataclass(frozen=True)
class Downloads:
    """Links to files; a saved page keeps them.

    Attributes:
        files: What each file is about, its name and its content.
    """

    files: tuple[tuple[str, str, str], ...]

    def _repr_html_(self) -> str:
        return "".join(
            f"<p>{html.escape(title)}</p>"
            + export.links(title, [("JSON", name, "application/json", content)])
            for title, name, content in self.files
        )

    def __repr__(self) -> str:
        """Lists the file names."""
        return ", ".join(name for _, name, _ in self.files)


def downloads(runs: Sequence[Predictions], *, draws: int = DRAWS, seed: int = 0) -> Downloads:
    """Offers everything that is scored of runs as files, by :func:`.report`.

    Args:
        runs: Each becomes a file; its schema comes with it.
        draws: Bootstrap draws of dialogues behind each interval.
        seed: Seed of the draws.

    Returns:
        The links; none without a run.
    """
    files = [
        (
            f"Everything about {made.record.name} over {made.corpus}.",
            f"{export.slug(f'{made.record.model} {made.corpus}')}.json",
            made.to_json(),
        )
        for made in (report(run, draws=draws, seed=seed) for run in runs)
    ]
    if files:
        schema = json.dumps(report_schema(), indent=1)
        files.append(("The schema of these reports.", "report.schema.json", schema))
    return Downloads(tuple(files))
