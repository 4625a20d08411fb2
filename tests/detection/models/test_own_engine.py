"""The engine of the guide *Add a model*, installed as another package's engine."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options
from cradle_lib.detection.models.engine import code_of, make_engine
from cradle_lib.errors import EngineError

from ..installed_engines import install_engines

#: A service whose first call of each question is refused, and may be charged.
SDK = """
class Busy(Exception):
    pass

class Reply:
    text, input, output = "none", 100, 2

class Client:
    def __init__(self, address, limit):
        self.seen = set()

    def complete(self, text):
        if text not in self.seen:
            self.seen.add(text)
            raise Busy("try again")
        return Reply()
"""
PROGRAM = """
import sys, time
import cradle_lib as cradle
from cradle_lib.detection import Model, Options
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import CradleError

time.sleep = lambda seconds: None
model = Model(
    id="mine", name="Mine", group="proprietary", engine="my-service", weights="mine",
    base_url="http://127.0.0.1:9", decoding={"max_new_tokens": 8},
    prices={"input": 1, "output": 1, "date": "2026-11-28", "source": "a test"},
)
options = Options(max_cost=float(sys.argv[2]), notice=print)
try:
    run(model, cradle.load_corpus("surrogate"), out=sys.argv[1], limit=2, options=options)
except CradleError as error:
    sys.exit(str(error))
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages with the engine of the guide and a service."""
    notebook = json.loads((paths.NOTEBOOKS / "add-a-model.ipynb").read_text("utf-8"))
    text = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    found = re.search(r"```python\n(.*?class MyService.*?)```", text, re.DOTALL)
    assert found
    entry = re.search(r"```toml\n(\[project\.entry-points.*?)```", text, re.DOTALL)
    assert entry
    groups = tomllib.loads(entry[1])["project"]["entry-points"]
    install_engines(tmp_path, monkeypatch, **groups["cradle.engines"])
    (tmp_path / "my_service.py").write_text(found[1], encoding="utf-8")
    (tmp_path / "my_sdk.py").write_text(SDK, encoding="utf-8")
    return tmp_path


def test_an_own_engine_resumes_and_keeps_the_cost_limit(site: Path) -> None:
    journal = site / "mine.jsonl"

    def start(limit: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, str(journal), limit],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{paths.ROOT}"},
        )

    def answers() -> list[dict[str, object]]:
        lines = map(json.loads, journal.read_text("utf-8").splitlines())
        return [line for line in lines if "answer" in line]

    stopped = start("0.05")
    assert "of --max-cost $0.05" in stopped.stderr, stopped.stderr
    kept = [line for line in answers() if line["outcome"] == "ok"]
    lost = [line for line in answers() if line["outcome"] == "failed"]
    # Each question was refused once, which is charged, and the last of them not asked again.
    assert kept
    assert 0 <= len(lost) - len(kept) <= 1
    done = start("5")
    assert done.returncode == 0, done.stderr
    asked = [(line["dialogue"], line["turn"]) for line in answers() if line["outcome"] == "ok"]
    assert len(asked) == len({*asked}) > len(kept)
    record = json.loads(journal.read_text("utf-8").splitlines()[0])["record"]
    assert record["code"].startswith("sha256:")
    # Other code of the engine is another run.
    with (site / "my_service.py").open("a", encoding="utf-8") as module:
        module.write("# changed\n")
    assert "other" in start("5").stderr


def test_the_whole_package_of_an_engine_is_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("deep/__init__.py", "deep/engines/__init__.py", "deep/labels.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    (tmp_path / "deep/engines/own.py").write_text("class Own:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module("deep.engines.own").Own
    codes = set()
    for file in ("labels.py", "engines/own.py", "engines/__init__.py", "__init__.py"):
        codes.add(code_of(own))
        with (tmp_path / "deep" / file).open("a") as module:
            module.write("# changed\n")
    assert len(codes | {code_of(own)}) == 5


def test_an_engine_that_cannot_be_made_is_an_error(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_engines(tmp_path, monkeypatch, broken="broken:Broken")
    (tmp_path / "broken.py").write_text(
        "class Broken:\n    @classmethod\n    def create(cls, *_):\n        return {}['address']\n"
    )
    model = Model.model_construct(name="Mine", engine="broken")
    with pytest.raises(EngineError, match=r"Mine: the engine broken can't be made \(KeyError: "):
        make_engine(model, corpus, Options())
