"""A newcomer builds the book, builds it again, and executes one notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

from .checkout import Checkout

#: A text that a reader sees on each of these pages.
SHOWN = {
    "sections/home": "Findings about the paper",
    "sections/results": "Keyword lexicon",
    "sections/runs": "SmolLM2-135M, tuned",
    "sections/agreement": "Jaccard",
    "sections/explore": "Explorer",
    "departures": "Departures",
}


def test_a_newcomer_gets_the_whole_book_and_builds_it_once(built: Checkout) -> None:
    for page, text in SHOWN.items():
        assert text in built.page(page).get_text(" "), page
    assert "executing" not in built.run("make book")
    assert "executing" not in built.run(".venv/bin/jupyter-book build book/")


# A documented command starts papermill in the top folder.
@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("notebooks", "../.venv/bin/papermill implied.ipynb {out}"),
        (".", ".venv/bin/jupyter execute notebooks/implied.ipynb --output={out}"),
    ],
)
def test_one_notebook_is_executed_by_itself(
    built: Checkout, tmp_path: Path, folder: str, command: str
) -> None:
    out = tmp_path / "implied.ipynb"
    built.run(f"cd {folder} && {command.format(out=out)}")
    text = out.read_text(encoding="utf-8")
    assert "711 labels of user turns" in text
    assert '"output_type": "error"' not in text
