"""Has the embedded model write the dialogues in ``data/construction``: ``tools.model_written``.

Run with ``python -m tools.model_written [STEP ...]``. It makes four sets from the shipped posts,
through a real server: training and annotated dialogues, each with and without a grammar that forces
the form. It resumes after a stop or kill. After each step it copies the journal, record and plans
of each set, and replaces details that the validator forbids.
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
# The sets: kind of dialogue, with grammar or free, and attempts per dialogue.
SETS: Final[tuple[tuple[Kind, str, int], ...]] = (
    ("training", "grammar", 2),
    ("training", "free", 1),
    ("annotated", "grammar", 1),
    ("annotated", "free", 1),
)
# Posts per set after each step. All sets grow together, so that a stopped run has some of each.
STEPS: Final = (6, 12, 24, 60)


def main(steps: Sequence[int]) -> None:
    """Makes the sets: ``steps`` are the numbers of posts per set, in ascending order."""
    posts = load_posts()
    with serving() as address:
        for step in steps:
            for kind, form, attempts in SETS:
                name = f"{kind}-{form}"
                # llama.cpp's grammar fixes the number of lines, the order of speakers and the
                # form of tags, but not the text.
                grammar = Path(__file__).with_name(f"{kind}.gbnf").read_text(encoding="utf-8")
                forced = {"grammar": grammar} if form == "grammar" else {}
                made = construct(
                    f"openai:{SERVED_NAME}",
                    OUT / name,
                    posts=posts,
                    plans=plan_dialogues(posts, kind)[:: len(posts) // step],
                    base_url=f"{address}/v1",
                    attempts=attempts,
                    name=f"posts-{name}",
                    options=Options(concurrency=1),
                    temperature=0.7,
                    max_new_tokens=400,
                    # Without it, the model repeats itself until the token limit.
                    extra={"repeat_penalty": 1.1, **forced},
                )
                out.print(repr(made), markup=False)
                ship(OUT / name, SHIPPED / name)


def ship(folder: Path, target: Path) -> None:
    """Copies plans, record and journal; forbidden details are replaced by a placeholder."""
    for name in ("plans.csv", "record.json"):
        with replacing(target / name) as part:
            part.write_bytes((folder / name).read_bytes())
    with replacing(target / "journal.jsonl") as part:
        part.write_text("".join(map(_mild, (folder / "journal.jsonl").read_text().splitlines())))


def _mild(line: str) -> str:
    content = json.loads(line)
    # Searches the lower-case answer; positions stay valid, because no letter changes its length.
    answer = content.get("answer", "")
    for found in reversed(list(forbidden_detail().finditer(answer.lower()))):
        answer = f"{answer[: found.start()]}{LEFT_OUT}{answer[found.end() :]}"
    return json.dumps(content | ({"answer": answer} if "answer" in content else {})) + "\n"


if __name__ == "__main__":
    main([int(step) for step in sys.argv[1:]] or STEPS)
