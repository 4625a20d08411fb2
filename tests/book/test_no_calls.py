"""Building the book calls no service, even after earlier consent."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cradle_lib import paths

from ..loopback import Handler, Loopback

PLAN = """
pages:
  - page: runs
    notebook: runs.ipynb
    parameters: {corpus: "{corpus}"}
    provides: ["runs/{corpus_name}/{model}.jsonl"]
"""
TOC = "format: jb-book\nroot: intro\nchapters:\n  - file: sections/runs\n"
MODELS = """
keyword: {{name: Keyword, group: baseline, engine: keyword, default: true}}
near: &near
  name: Near
  group: open
  engine: openai
  weights: any
  base_url: {url}/v1
  decoding: {{max_new_tokens: 8}}
  prices: {{input: 1, output: 1, date: 2026-01-01, source: here}}
  default: true
far:
  <<: *near
  name: Far
  remote: true
  key: {{variable: FAR_KEY}}
# In the group of baselines, but served.
disguised:
  <<: *near
  name: Disguised
  group: baseline
"""

PROGRAM = """
import sys
from pathlib import Path
from cradle_lib.book.build import update
from cradle_lib.book.plan import Project
from cradle_lib.cli import main
codes = []
for line in sys.argv[1:]:
    sys.argv = ["cradle", *line.split()]
    try:
        main()
    except SystemExit as ended:
        codes.append(ended.code or 0)
print("codes", *codes)
if __name__ == "__main__":
    print(*update(Project(Path.cwd())).executed)
"""


class Counting(Handler):
    """Answers every request with ``none`` and counts them."""

    calls = 0

    def do_POST(self) -> None:
        type(self).calls += 1
        tokens = len(self.body()) // 4
        message = {"role": "assistant", "content": "none"}
        reply = {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1},
        }
        self.send_json(reply)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A project with a copy of the library, one notebook and another registry."""
    shutil.copytree(paths.ROOT / "cradle_lib", tmp_path / "cradle_lib")
    (tmp_path / "data").symlink_to(paths.DATA)
    for folder in ("notebooks", "book"):
        (tmp_path / folder).mkdir()
    shutil.copy(paths.NOTEBOOKS / "runs.ipynb", tmp_path / "notebooks")
    (tmp_path / "notebooks" / "pages.yml").write_text(PLAN)
    (tmp_path / "book" / "_toc.yml").write_text(TOC)
    rows = "".join(f"0,User: Hello {n}.,none\n1,User: Bye.,alert_ongoing\n" for n in range(12))
    (tmp_path / "mine.csv").write_text(f"turn_id,text,labels\n{rows}")
    with Loopback(Counting) as service:
        (tmp_path / "models.yml").write_text(MODELS.format(url=service.url))
        yield tmp_path


def test_building_the_book_calls_no_service_and_shows_unfinished_runs(place: Path) -> None:
    models = ("near", "far", "disguised")
    asked = "infer --corpus mine.csv --sample 5 --max-cost 0.5 --yes --model "
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(asked + model for model in models)],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(place),
            "FAR_KEY": "sk-planted-0123456789",
            "CRADLE_CORPUS": "mine.csv",
        },
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("codes 0 0 0\nruns\n"), done.stderr
    # Ten user turns per model from `infer`, and none from the build.
    assert Counting.calls == 30
    for model in models:
        journal = place / "runs" / "mine" / f"{model}.jsonl"
        assert len(journal.read_text().splitlines()) == 1 + 10
    page = (place / "book" / "sections" / "runs.ipynb").read_text()
    for system in ("Keyword", "Near", "Far", "Disguised"):
        assert f"{system}: record of the run." in page
