"""Keywords for the search, and the index of the paper's tables and figures."""

from __future__ import annotations

from cradle_lib import paths, strict_yaml


def test_the_papers_index_has_every_table_and_figure() -> None:
    # The paper has twelve tables and fourteen figures.
    keywords = strict_yaml.read(paths.BOOK / "search.yml")
    found = {word for words in keywords.values() for word in words}
    assert found >= {f"Table {n}" for n in range(1, 13)} | {f"Figure {n}" for n in range(1, 15)}
    text = (paths.BOOK / "paper-index.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 20
    for row in rows:
        assert len(row) == 4, row
        assert all(cell.strip() for cell in row), row
