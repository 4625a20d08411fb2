"""`make book` builds in the active environment, or prints why that is not possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from cradle_lib import paths

SITE = next(path for path in sys.path if path.endswith("site-packages"))


def dry_run(active: Path | None, tmp_path: Path, *variables: str) -> str:
    """Returns the commands that make would run in a folder without ``.venv``."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(paths.ROOT / name, tmp_path)
    shutil.copytree(paths.ROOT / "requirements", tmp_path / "requirements", dirs_exist_ok=True)
    (tmp_path / "tools").mkdir(exist_ok=True)
    shutil.copy(paths.ROOT / "tools/active_environment.py", tmp_path / "tools")
    env = {"PATH": os.environ["PATH"]}
    if active is not None:
        env |= {name: str(active) for name in variables or ("VIRTUAL_ENV",)}
    return make(tmp_path, "book", env).stdout


def make(
    folder: Path, goal: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--dry-run", goal],
        cwd=folder,
        env=env or {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    venv.create(tmp_path / "empty", with_pip=False)
    return tmp_path / "empty"


def test_without_an_active_environment_the_project_makes_its_own(tmp_path: Path) -> None:
    lines = dry_run(None, tmp_path).splitlines()
    assert any("-m venv .venv" in line for line in lines)
    assert lines[-1].startswith(".venv/bin/jupyter-book build")


def test_an_environment_of_another_folder_is_refused(tmp_path: Path) -> None:
    made = tmp_path / "a folder" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    assert "-m venv" not in dry_run(None, made.parent)
    moved = made.parent.rename(tmp_path / "moved")
    refused = make(moved, "book")
    assert refused.returncode == 2
    assert f".venv was made as {made}. Remove it" in refused.stderr
    assert make(moved, "clean").returncode == 0


def test_an_active_environment_is_used_if_it_is_suitable(empty: Path, tmp_path: Path) -> None:
    site = next((empty / "lib").glob("python*/site-packages"))
    (site / "all.pth").write_text(SITE)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        # Nothing is installed.
        assert dry_run(empty, tmp_path, variable).splitlines() == [
            f"{empty}/bin/jupyter-book build --warningiserror --keep-going book/"
        ]
    old = site / "papermill-1.0.dist-info"
    old.mkdir()
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: papermill\nVersion: 1.0\n")
    assert "lacks papermill>=2.6 (it has 1.0)" in dry_run(empty, tmp_path)
