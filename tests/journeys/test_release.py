"""The release is fetched from a stub of the Hub, shown in the book, and fetched again."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib.corpus import load_corpus
from cradle_lib.corpus.release import write_release

from ..corpus.test_hub import Hub
from ..loopback import Loopback
from .checkout import Checkout

#: The names of the splits on the Hub, and how many dialogues the stub has of each.
SPLITS = {"test": ("test", 60), "dev": ("validation", 30), "train": ("train", 60)}


def release_files(folder: Path) -> dict[str, bytes]:
    """Writes parts of the surrogate corpus, named as the files of the release."""
    found = {}
    for split, (name, size) in SPLITS.items():
        part = load_corpus("surrogate", split).subset(range(size), f"part-{split}")
        path = folder / f"{split}.parquet"
        write_release(part, path)
        found[f"data/{name}-00000-of-00001.parquet"] = path.read_bytes()
    return found


def test_the_release_is_fetched_and_shown(
    copied: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hub, "files", release_files(tmp_path))
    with Loopback(Hub) as hub:
        fetch = f"HF_ENDPOINT={hub.url} HF_HUB_DISABLE_XET=1 .venv/bin/cradle data fetch"
        # The files are kept, and the exit code says that the counts are not the published ones.
        assert "dialogues differs by -540" in copied.run(fetch, fails=True)
        # The pages about the surrogate corpus stay as they are.
        assert "executing" not in copied.run("make book")
        copied.run("make book", CRADLE_CORPUS="hub")
        assert "Keyword lexicon" in copied.page("sections/results").get_text(" ")
        assert "SmolLM2-135M, tuned" not in copied.page("sections/results").get_text(" ")
        copied.run(fetch, fails=True)
    assert "executing" not in copied.run("make book", CRADLE_CORPUS="hub")
