"""The lists of dependencies agree: pyproject.toml, the lock, and conda's file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from cradle_lib import paths

PROJECT: dict[str, Any] = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
REQUIREMENTS = [
    Requirement(line)
    for line in (*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra))
]


def locked() -> dict[str, Version]:
    lines = (paths.ROOT / "requirements.lock").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(pin) == 2 for pin in pins), "every line of the lock is an exact pin"
    return {canonicalize_name(name): Version(pinned) for name, pinned in pins}


def hashed(name: str) -> dict[Requirement, list[str]]:
    """Returns the pins of a lock file with the hashes of each."""
    text = (paths.ROOT / "requirements" / name).read_text(encoding="utf-8")
    found: dict[Requirement, list[str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        pin, *hashes = line.split("--hash=")
        found[Requirement(pin)] = [each.strip() for each in hashes]
    return found


def installed(extras: Iterable[str]) -> set[str]:
    """Returns the recursive dependencies of the project in this environment, except torch's."""
    found: set[tuple[str, str]] = set()
    wanted = [("cradle-lib", extra) for extra in ("", *extras)]
    while wanted:
        name, extra = wanted.pop()
        if (name, extra) in found or name == "torch":
            continue
        found.add((name, extra))
        for line in distribution(name).requires or ():
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                wanted += [(canonicalize_name(need.name), each) for each in ("", *need.extras)]
    return {name for name, _ in found} - {"cradle-lib"}


def test_every_file_that_make_installs_has_a_hash() -> None:
    pins, book, dev = locked(), hashed("book.lock"), hashed("dev.lock")
    for pin, hashes in (hashed("uv.lock") | book | dev).items():
        assert hashes, pin
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", each) for each in hashes), pin
        [exact] = pin.specifier
        assert exact.operator == "=="
        # Build requirements are not in requirements.lock.
        assert pins.get(canonicalize_name(pin.name), Version(exact.version)) == Version(
            exact.version
        )

    def here(lock: Iterable[Requirement]) -> set[str]:
        return {
            canonicalize_name(pin.name)
            for pin in lock
            if pin.marker is None or pin.marker.evaluate()
        }

    assert here(book) >= installed(["book"]) | {"hatchling"}
    assert here([*book, *dev]) >= installed(set(EXTRAS) - {"lab"})
    # The build of torch depends on the machine.
    assert not any(re.match("torch$|triton|nvidia|cuda", name) for name in here([*book, *dev]))


def test_the_lock_pins_every_dependency_to_an_allowed_version() -> None:
    pins = locked()
    for requirement in REQUIREMENTS:
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is not in requirements.lock: run `make lock`"
        assert requirement.specifier.contains(pins[name])


def test_the_conda_environment_uses_the_lock() -> None:
    content = yaml.safe_load((paths.ROOT / "environment.yml").read_text())
    (pip,) = [entry["pip"] for entry in content["dependencies"] if isinstance(entry, dict)]
    assert pip[0] == "--constraint requirements.lock"
    # The packages of the book and no others.
    assert pip[1:] == ["--editable .[book]"]
    conda = [entry for entry in content["dependencies"] if isinstance(entry, str)]
    assert [entry.split("=")[0] for entry in conda] == ["python", "pip"]


def test_the_book_has_one_configuration() -> None:
    # One file links to the other. Where links become copies, the copies must be equal.
    copies = [(paths.ROOT / "_config.yml"), (paths.BOOK / "_config.yml")]
    assert copies[0].read_text(encoding="utf-8") == copies[1].read_text(encoding="utf-8")


def test_the_makefile_installs_all_extras() -> None:
    text = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    named = [set(found.split(",")) for found in re.findall(r"\.\[([a-z,]+)\]", text)]
    assert set(EXTRAS) - {"lab"} in named


def test_the_changelog_has_the_version_and_date_of_the_release() -> None:
    citation = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (paths.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {PROJECT['version']} ({citation['date-released']})" in changelog
