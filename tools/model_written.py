"""Has the embedded model write all shipped posts through a real server, for ``data/construction``.

``python -m tools.model_written``: both kinds, with a grammar that forces the form and without.
Stopped or killed, it goes on where it was.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from cradle_lib import paths
from cradle_lib.cli.console import out
from cradle_lib.construction.construct import construct, form_grammar
from cradle_lib.construction.plan import Kind
from cradle_lib.detection import Options
from cradle_lib.detection.local.serving import NAME, serving

OUT: Final = paths.RUNS / "construction"
# Which sets are made, and how often a dialogue is asked for.
SETS: Final[tuple[tuple[Kind, str, int], ...]] = (
    ("training", "grammar", 2),
    ("annotated", "grammar", 1),
    ("training", "free", 1),
    ("annotated", "free", 1),
)


def main(wanted: Sequence[str]) -> None:
    """Makes the sets that are named, such as ``training-grammar``; all if none is."""
    with serving() as address:
        for kind, form, attempts in SETS:
            name = f"{kind}-{form}"
            if wanted and name not in wanted:
                continue
            grammar = form_grammar(kind) if form == "grammar" else {}
            made = construct(
                kind=kind,
                writer=f"openai:{NAME}",
                base_url=f"{address}/v1",
                attempts=attempts,
                out=OUT / name,
                name=f"posts-{name}",
                options=Options(concurrency=1),
                temperature=0.7,
                max_new_tokens=400,
                # It repeats itself for ever otherwise.
                extra={"repeat_penalty": 1.1, **grammar},
            )
            out.print(repr(made), markup=False)


if __name__ == "__main__":
    main(sys.argv[1:])
