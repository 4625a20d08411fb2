"""JSON files that are part of a page."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

from cradle_lib.display import export


@dataclass(frozen=True)
class Downloads:
    """Links to files; a saved page keeps them.

    Attributes:
        files: What each file is about, its name and its content.
    """

    files: tuple[tuple[str, str, str], ...]

    def _repr_html_(self) -> str:
        return "".join(
            f"<p>{html.escape(title)}</p>"
            + export.links(title, [("JSON", name, "application/json", content)])
            for title, name, content in self.files
        )

    def __repr__(self) -> str:
        """Lists the file names."""
        return ", ".join(name for _, name, _ in self.files)


def downloads(files: Iterable[tuple[str, str, str]]) -> Downloads:
    """Offers JSON files on a page, such as those of :func:`.report_files`.

    Args:
        files: What each file is about, its name and its content.

    Returns:
        The links; none without a file.
    """
    return Downloads(tuple(files))
