"""No file has careless words about the subject, or marks of unfinished work."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml

from cradle_lib import paths

TEXT = {".py", ".pyi", ".md", ".yml", ".yaml", ".txt", ".ipynb", ".html", ".css", ".cff", ".bib"}
# Words that hurt, blame or dramatise, by the safe-messaging guidelines for suicide reporting.
CARELESS = re.compile(
    r"commit(ted|s|ting)?\s+suicide|(un)?successful\s+(suicide|attempt)|failed\s+(suicide|attempt)"
    r"|suicide\s+epidemic|completed\s+suicide|rape\s+victim|\bvictims?\s+of\s+their\s+own"
    r"|\bcutters?\b|\bcrazy\s+person|\bpsychos?\b|attention[- ]seek",
    re.IGNORECASE,
)
# Files that list the words in order to forbid them.
LISTS = {Path(__file__).name, "forbidden.txt"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b|NotImplementedError|[Ll]orem ipsum")


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [path for name in listed if (path := paths.ROOT / name).is_file()]


@pytest.mark.parametrize("pattern", [CARELESS, UNFINISHED], ids=["careless", "unfinished"])
def test_no_file_contains_a_careless_or_unfinished_word(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.relative_to(paths.ROOT)}:{number}: {hit[0]}"
        for path in tracked()
        if path.suffix in TEXT and path.name not in LISTS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (hit := pattern.search(line))
    ]
    assert not found, "\n".join(found)


@pytest.mark.skipif(not os.environ.get("CI"), reason="only checked in continuous integration")
def test_help_lines_were_checked_within_half_a_year() -> None:
    lines = yaml.safe_load((paths.DATA / "help_lines.yml").read_text(encoding="utf-8"))
    age = date.today() - lines["verified_on"]
    assert timedelta(0) <= age <= timedelta(days=180), (
        f"help lines were last verified {age.days} days ago: check each number, then verified_on"
    )
