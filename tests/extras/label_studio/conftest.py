"""Fixtures: twenty dialogues of the surrogate, with their part of the shipped study."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cradle_extras.label_studio.exports import SHIPPED, read_exports
from cradle_extras.label_studio.study import Study
from cradle_lib.annotation.load import load_annotations
from cradle_lib.annotation.table import Annotations
from cradle_lib.corpus import Corpus, load_corpus

#: Tasks with their annotations, by the name of the exported project.
Exports = dict[str, list[dict[str, Any]]]
#: The annotations, and what was left out or is doubtful with its number.
Read = tuple[Annotations, Counter[str]]


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return load_corpus("surrogate", "test").subset(range(20), "small")


@pytest.fixture(scope="session")
def study(corpus: Corpus) -> Study:
    shipped = Study.load(SHIPPED / "study.json")
    own = tuple(item for item in shipped.assignments if item.dialogue in corpus.by_id)
    about = {"corpus": corpus.name, "texts": corpus.texts_fingerprint, "assignments": own}
    return shipped.model_copy(update=about)


@pytest.fixture(scope="session")
def annotations(corpus: Corpus) -> Annotations:
    every = load_annotations(load_corpus("surrogate", "test")).entries
    return Annotations.of(corpus, (entry for entry in every if entry.dialogue in corpus.by_id))


@pytest.fixture(scope="session")
def _exported(corpus: Corpus, study: Study) -> str:
    files: Exports = {}
    for path in sorted(SHIPPED.glob("*.json.gz")):
        for task in json.loads(gzip.decompress(path.read_bytes())):
            if task["data"]["dialogue_id"] in corpus.by_id:
                task["data"] |= {"corpus": study.corpus, "texts": study.texts}
                files.setdefault(path.name.partition(".")[0], []).append(task)
    return json.dumps(files)


@pytest.fixture
def exports(_exported: str) -> Exports:
    """Label Studio's JSON exports of the finished study by project; tests may change them."""
    files: Exports = json.loads(_exported)
    return files


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Exports], list[Path]]:
    """A function that writes exports to files."""

    def write(files: Exports) -> list[Path]:
        paths = []
        for name, content in files.items():
            paths.append(tmp_path / f"{name}.json")
            paths[-1].write_text(json.dumps(content), encoding="utf-8")
        return paths

    return write


@pytest.fixture
def read(
    exports: Exports, written: Callable[[Exports], list[Path]], study: Study, corpus: Corpus
) -> Callable[[], Read]:
    """A function that reads the exports, as the test has changed them, and counts what it notes."""

    def read_changed() -> Read:
        notes: Counter[str] = Counter()
        return read_exports(written(exports), study, corpus, notes), +notes

    return read_changed
