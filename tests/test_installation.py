"""The wheel and source distribution work in an empty environment, without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import find_model, load_registry, read_journal
from cradle_lib.detection.runs.run import run as run_here
from cradle_lib.version import library_version

pytestmark = pytest.mark.shipped
Run = Callable[..., subprocess.CompletedProcess[str]]


def done(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    # PYTHONPATH would select the library of this checkout instead of the installed one.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, cwd=cwd, env=env
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and source distribution, built from tracked files only."""
    source, dist = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    listed = done("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=paths.ROOT)
    for name in listed.stdout.splitlines():
        if (paths.ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(paths.ROOT / name, source / name, follow_symlinks=False)
    made = done(sys.executable, "-m", "hatchling", "build", "-d", dist, cwd=source)
    assert made.returncode == 0, made.stderr
    return dist


@pytest.fixture(scope="module")
def environment(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose environment has only the wheel and its dependencies."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home / "venv", with_pip=True)
    (wheel,) = built.glob("*.whl")
    quiet = ("-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check")
    allowed = ("--constraint", paths.ROOT / "requirements.lock")
    installed = done(home / "venv/bin/python", *quiet, *allowed, wheel, cwd=home)
    assert installed.returncode == 0, installed.stderr
    return home


@pytest.fixture
def cradle(environment: Path, tmp_path: Path) -> Run:
    """A function that runs the installed command in an empty folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    return lambda *words: done(environment / "venv/bin/cradle", *words, cwd=folder)


def test_the_installed_command_works_like_a_checkout(cradle: Run, tmp_path: Path) -> None:
    assert cradle("--version").stdout == f"cradle {library_version()}\n"
    made = cradle("infer", "--model", "keyword", "--out", tmp_path / "there.jsonl")
    assert made.returncode == 0, made.stderr
    record, answers = read_journal(tmp_path / "there.jsonl")
    here = run_here(find_model("keyword", load_registry()), load_corpus(), out=tmp_path)
    expected = read_journal(here)[1]
    assert [(a.key, a.answer) for a in answers] == [(a.key, a.answer) for a in expected]
    # Even if the environment is inside a repository, it is not the library's.
    assert (record.commit, record.dirty) == ("unknown", False)
    scored = cradle("score", tmp_path / "there.jsonl", "--draws", "5")
    assert scored.returncode == 0, scored.stderr
    assert f"|v{library_version()}" in scored.stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["infer", "--model", "gpt-5.1", "--set", "limit=1", "--yes"], "'cradle-lib[api]'"),
        (["infer", "--model", "smollm2-135m", "--set", "limit=1"], "'cradle-lib[local]'"),
        (["fork", "mine"], "Unpack the source distribution"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_missing_part_is_reported_with_the_command_that_installs_it(
    cradle: Run, words: list[str], hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    ended = cradle(*words)
    assert ended.returncode == 2
    assert hint in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_source_distribution_builds_the_same_small_wheel(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.stat().st_size < 5_000_000
    (source,) = built.glob("*.tar.gz")
    # Filters exist since Python 3.11.4.
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    shutil.unpack_archive(source, tmp_path, **safely)
    (root,) = tmp_path.iterdir()
    again = done(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "out", cwd=root)
    assert again.returncode == 0, again.stderr

    def content(path: Path) -> dict[str, int]:
        with zipfile.ZipFile(path) as archive:
            return {entry.filename: entry.CRC for entry in archive.infolist()}

    (other,) = (root / "out").glob("*.whl")
    assert content(other) == content(wheel)
