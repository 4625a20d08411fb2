"""Checkpoints as they are published on the Hub, with the real client and a small Hub on loopback.

The client reads its address at import, so each test runs a script in a separate process.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ...loopback import Handler, Loopback
from .conftest import NEW, OLD
from .test_adapter import lora, make_adapter
from .tiny_models import change_settings

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
TRAINED_ON = "other/base-bnb-4bit"
# Runs a model over one dialogue, and prints its record and answers, or the error.
SCRIPT = """
import json, sys
from pathlib import Path
from cradle_lib import paths
from cradle_lib.detection import Options, read_journal, resolve
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import CradleError
from tests.detection.dialogues import make_corpus

folder, runs = Path(sys.argv[1]), []
paths.PROMPTS = folder / "prompts"
turns = [("User", "hello", "none"), ("Listener", "hi", "none"), ("User", "so", "none")]
corpus = make_corpus([turns])
for spec, settings, out in json.loads(sys.argv[2]):
    said = []
    options = Options(device="cpu", notice=said.append)
    try:
        limits = {"max_new_tokens": 8, "dtype": "float32"}
        model = resolve(spec, prompt="short", notice=said.append, **limits, **settings)
        record, answers = read_journal(run(model, corpus, out=folder / out, options=options))
        runs.append([record.settings, [answer.answer for answer in answers], said])
    except CradleError as error:
        runs.append(str(error))
print(json.dumps(runs))
"""


class Hub(Handler):
    """Repositories of models: each a folder, with one commit that ``main`` names."""

    folders: ClassVar[dict[str, Path]] = {}
    commit: ClassVar[str] = OLD

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].removeprefix("/api/models").strip("/")
        owner, name, kind, commit, *rest = [*path.split("/"), *[""] * 4]
        folder, file = self.folders.get(f"{owner}/{name}"), "/".join(filter(None, rest))
        if folder is None or commit not in ("", "main", OLD, NEW):
            self.send(b"", 404, {"x-error-code": "RepoNotFound"})
        elif kind == "":
            self.send_json({"id": path, "sha": self.commit})
        elif kind == "revision":
            self.send_json({"id": path, "sha": self.commit if commit == "main" else commit})
        elif kind == "tree":
            files = [(each.name, each.stat().st_size) for each in folder.iterdir()]
            self.send_json(
                [{"type": "file", "path": n, "size": size, "oid": n} for n, size in files]
            )
        elif kind == "resolve" and (folder / file).is_file():
            body = (folder / file).read_bytes()
            commit = self.commit if commit == "main" else commit
            tag = f'"{hashlib.sha256(body).hexdigest()}"'
            self.send(body, 200, {"etag": tag, "x-repo-commit": commit})
        else:
            self.send(b"", 404, {"x-error-code": "EntryNotFound"})


@pytest.fixture
def hub(weights: Path, tmp_path: Path) -> Iterator[Loopback]:
    """A Hub with a base, an adapter that was trained on a copy of it, and pickled weights."""
    make_adapter(weights, tmp_path / "adapter", lora())
    names = {"base_model_name_or_path": TRAINED_ON}
    change_settings(tmp_path / "adapter", "adapter_config.json", **names)
    pickled = shutil.copytree(weights, tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    adapter = tmp_path / "adapter"
    Hub.folders = {"lab/base": weights, "lab/adapter": adapter, "lab/pickled": pickled}
    Hub.commit = OLD
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "short.txt").write_text("Label.\n{history}\n{current_turn}\n")
    with Loopback(Hub) as server:
        yield server


def runs_of(hub: Loopback, folder: Path, *runs: tuple[str, dict[str, Any], str]) -> list[Any]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HF_")} | {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(folder / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
    }
    command = [sys.executable, "-c", SCRIPT, str(folder), json.dumps(runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout.splitlines()[-1]))


def test_an_adapter_on_the_hub_is_pinned_and_answers_like_its_folder(
    hub: Loopback, tmp_path: Path, weights: Path
) -> None:
    spec, named = "hf:lab/base + lab/adapter", {"trained_on": TRAINED_ON}
    local = f"hf:{weights} + {tmp_path / 'adapter'}"
    refused, alone, found, folders, base, wrong, pickled = runs_of(
        hub,
        tmp_path,
        (spec, {}, "refused"),
        ("hf:lab/adapter", {}, "alone"),
        (spec, named, "found"),
        (local, named, "folders"),
        ("hf:lab/base", {}, "base"),
        (spec, {"trained_on": "other/base"}, "wrong"),
        ("hf:lab/pickled", {}, "pickled"),
    )
    assert f"was trained on {TRAINED_ON}" in refused
    assert f"`--set trained_on={TRAINED_ON}`" in refused
    assert f"was trained on {TRAINED_ON}" in wrong
    assert f"lab/adapter is an adapter, and its adapter_config.json names {TRAINED_ON}" in alone
    assert f"`hf:BASE + lab/adapter`, with `--set trained_on={TRAINED_ON}`" in alone
    assert "lab/pickled has no safetensors, only pickled weights (.bin)" in pickled
    settings, answers, _ = found
    assert (settings["revision"], settings["trained_on"]) == (f"{OLD} + {OLD}", TRAINED_ON)
    assert answers == folders[1] != base[1]
    # The first start's commits are used again.
    Hub.commit = NEW
    again, other = runs_of(hub, tmp_path, (spec, named, "found"), (spec, named, "new"))
    assert again[:2] == found[:2]
    assert other[0]["revision"] == f"{NEW} + {NEW}"
