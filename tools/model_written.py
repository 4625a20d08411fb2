"""Has the embedded model write all shipped posts through a real server, for ``data/construction``.

``python -m tools.model_written``: both kinds, with a grammar that forces the form and without.
Stopped or killed, it goes on where it was. What is there is then shipped: journal and plans of each
set, without details that the validator forbids.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.llama_server import SERVED_NAME, serving
from cradle_extras.construction import construct, load_posts, plan_dialogues
from cradle_extras.construction.construct import SHIPPED
from cradle_extras.construction.plan import Kind
from cradle_extras.construction.validators.content import LEFT_OUT, forbidden_detail
from cradle_lib import paths
from cradle_lib.cli.console import out
from cradle_lib.detection import Options
from cradle_lib.files import replacing

OUT: Final = paths.RUNS / "construction"
# Which sets are made, and how often a dialogue is asked for.
SETS: Final[tuple[tuple[Kind, str, int], ...]] = (
    ("training", "grammar", 2),
    ("training", "free", 1),
    ("annotated", "grammar", 1),
    ("annotated", "free", 1),
)
# All sets grow together, so that a run that is stopped has something of each.
STEPS: Final = (6, 12, 24, 60)


def main(steps: Sequence[int]) -> None:
    """Makes the sets, as many posts of each as the steps say one after the other."""
    posts = load_posts()
    with serving() as address:
        for step in steps:
            for kind, form, attempts in SETS:
                name = f"{kind}-{form}"
                # llama.cpp's grammar fixes number and order of lines, speakers, and how tags are
                # written, but not the text.
                grammar = Path(__file__).with_name(f"{kind}.gbnf").read_text(encoding="utf-8")
                forced = {"grammar": grammar} if form == "grammar" else {}
                made = construct(
                    posts,
                    writer=f"openai:{SERVED_NAME}",
                    plans=plan_dialogues(posts, kind)[:: len(posts) // step],
                    base_url=f"{address}/v1",
                    attempts=attempts,
                    out=OUT / name,
                    name=f"posts-{name}",
                    options=Options(concurrency=1),
                    temperature=0.7,
                    max_new_tokens=400,
                    # It repeats itself for ever otherwise.
                    extra={"repeat_penalty": 1.1, **forced},
                )
                out.print(repr(made), markup=False)
                ship(OUT / name, SHIPPED / name)


def ship(folder: Path, target: Path) -> None:
    """Copies plans, record and journal; what is forbidden is replaced, and still found."""
    for name in ("plans.csv", "record.json"):
        with replacing(target / name) as part:
            part.write_bytes((folder / name).read_bytes())
    with replacing(target / "journal.jsonl") as part:
        part.write_text("".join(map(_mild, (folder / "journal.jsonl").read_text().splitlines())))


def _mild(line: str) -> str:
    content = json.loads(line)
    # The lower case is searched; none of the letters changes its length here.
    answer = content.get("answer", "")
    for found in reversed(list(forbidden_detail().finditer(answer.lower()))):
        answer = f"{answer[: found.start()]}{LEFT_OUT}{answer[found.end() :]}"
    return json.dumps(content | ({"answer": answer} if "answer" in content else {})) + "\n"


if __name__ == "__main__":
    main([int(step) for step in sys.argv[1:]] or STEPS)
