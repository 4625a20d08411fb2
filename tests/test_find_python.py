"""`make` uses a supported Python, which uv finds if the machine's own is too new or too old."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cradle_lib import paths

UV = Path(sys.executable).with_name("uv")
BASE = Path(sys.base_prefix) / "bin"
OWN = BASE / f"python{sys.version_info.major}.{sys.version_info.minor}"
VERSION = "import sys; print(*sys.version_info[:2])"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with the programs of every machine, and with uv, but without Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("env", "head", "rm", "sed", "sh"):
        (folder / name).symlink_to(str(shutil.which(name)))
    (folder / "uv").symlink_to(UV)
    return folder


def other(folder: Path, version: str) -> Path:
    """Makes a program that says it is another version of Python, and can do nothing else."""
    path = folder / f"other-{version}"
    path.write_text(f'#!/bin/sh\n[ "$1" = -c ] && echo {version}\n')
    path.chmod(0o755)
    return path


def find(python: str | Path, folder: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(folder), "PATH": ":".join(map(str, path)), "UV_OFFLINE": "1"}
    return subprocess.run(
        ["/bin/sh", "tools/find_python.sh", str(python), str(folder / "uv-for-make")],
        cwd=paths.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not UV.exists(), reason="uv is not installed in this environment")
@pytest.mark.parametrize("version", ["3.14.0", "3.10.13", "4.0.1", "3.9.6", "2.7.18"])
def test_uv_finds_another_python(version: str, tools: Path, tmp_path: Path) -> None:
    python = other(tmp_path, version)
    done = find(python, tmp_path, tools, BASE)
    assert done.returncode == 0, done.stderr
    [said] = done.stderr.splitlines()
    assert said.startswith(f"{python} is Python {version}, and Python 3.11, 3.12 or 3.13 is needed")
    found = subprocess.check_output([done.stdout.strip(), "-c", VERSION], text=True).split()
    assert found[0] == "3"
    assert found[1] in ("11", "12", "13")


@pytest.mark.skipif(not UV.exists(), reason="uv is not installed in this environment")
@pytest.mark.parametrize(
    ("has_uv", "reason"),
    [(True, "Network connectivity is disabled"), (False, "uv could not be installed")],
)
def test_without_a_network_it_says_what_to_install(
    has_uv: bool, reason: str, tools: Path, tmp_path: Path
) -> None:
    if not has_uv:
        (tools / "uv").unlink()
    done = find(other(tmp_path, "3.14.0"), tmp_path, tools)
    assert (done.returncode, done.stdout) == (1, "")
    _, message = done.stderr.splitlines()
    assert message.startswith("error: no supported Python is here, and none could be downloaded")
    assert reason in message
    assert "Install Python 3.13 with its venv module" in message
    assert not (tmp_path / "uv-for-make").exists()


def test_a_supported_python_is_used_as_it_is(tools: Path, tmp_path: Path) -> None:
    done = find(OWN, tmp_path, tools)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{OWN}\n", "")


@pytest.mark.skipif(not UV.exists(), reason="uv is not installed in this environment")
def test_make_builds_its_environment_with_the_found_python(tools: Path, tmp_path: Path) -> None:
    for name in ("Makefile", "tools/find_python.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(paths.ROOT / name, tmp_path / name)
    for missing in (other(tmp_path, "3.14.0"), tmp_path / "no-python"):
        shutil.rmtree(tmp_path / ".venv", ignore_errors=True)
        done = subprocess.run(
            ["make", f"PYTHON={missing}", ".venv/bin/python"],
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": f"{tools}:{BASE}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "-m venv .venv" in done.stdout
        command = [tmp_path / ".venv/bin/python", "-m", "pip", "--version"]
        assert "pip" in subprocess.check_output(command, text=True)
