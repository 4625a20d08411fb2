"""The explorer of a page: its markup, and the files that it loads.

CSS classes: ``cradle-explorer``, and those under it; they are in ``explorer.css``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any, Final

from cradle_lib.arguments import checked
from cradle_lib.display.explorer.page_files import FOLDER, PAGE_FILES
from cradle_lib.errors import BookError

_HERE: Final = Path(__file__).parent
_SCRIPTS: Final = (
    *("data", "state", "filters", "search", "marks", "list", "dialogue", "turn", "play"),
    *("controls", "keys", "page"),
)
_TEXT: Final = {
    "own": "",
    "absent": "The text of this corpus is not part of this page: only the marks are shown.",
    "foreign": "This site contains text of a corpus that is not the surrogate, because its builder "
    "asked for it. It is for this machine only: do not publish it.",
}


@dataclass(frozen=True)
class Explorer:
    """The explorer of a corpus: its dialogues with the predictions of systems.

    Attributes:
        data: The result of :func:`.explorer_data`: name of a file to its content, ready for JSON.
        people: The same for annotators instead of systems, if there are any.
    """

    data: Mapping[str, Any]
    people: Mapping[str, Any] | None = None

    @cached_property
    def files(self) -> dict[str, str]:
        """The files that the page loads: name to content.

        Browsers let a page opened from disk load scripts but not fetch data, so each data file is
        a script with one call: ``cradleExplorer.receive(NAME, DATA)``.
        """
        script = "".join(_read(f"{name}.js") for name in _SCRIPTS)
        found = {
            "explorer.js": f'(() => {{\n"use strict";\n{script}}})();\n',
            "explorer.css": _read("explorer.css"),
        }
        people = {f"annotators-{name}": content for name, content in (self.people or {}).items()}
        for name, content in {**self.data, **people}.items():
            packed = json.dumps(content, separators=(",", ":"))
            found[f"{name}.js"] = f"cradleExplorer.receive({json.dumps(name)},{packed});\n"
        return found

    @cached_property
    def folder(self) -> str:
        """The folder of the files in the site; its name has a hash of their contents."""
        digest = hashlib.sha256()
        for name, content in self.files.items():
            digest.update(f"{name}\0{content}\0".encode())
        return f"{FOLDER}/{digest.hexdigest()[:12]}"

    def _repr_html_(self) -> str:
        """The markup of the page, without any text of a dialogue."""
        kind = self.data["core"]["text"]
        return Template(_read("explorer.html")).substitute(
            folder=f"../{self.folder}/",
            help="../help.html",
            people="yes" if self.people else "no",
            text="no" if kind == "absent" else "yes",
            part=self.data["core"]["part"],
            single=" single" if len(self.data["core"]["dialogues"]) == 1 else "",
            notice=f'<p class="notice" role="note">{_TEXT[kind]}</p>' if _TEXT[kind] else "",
        )

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        data = {"text/html": self._repr_html_(), "text/plain": repr(self)}
        return data, {PAGE_FILES: {f"{self.folder}/{name}": c for name, c in self.files.items()}}

    def __repr__(self) -> str:
        """States the numbers of dialogues and systems; contains no text of a dialogue."""
        core = self.data["core"]
        dialogues, systems = len(core["dialogues"]), len(core["systems"])
        return f"Explorer of {dialogues:,} dialogues and {systems} systems"


@checked
def explore(data: Mapping[str, Any], *, people: Mapping[str, Any] | None = None) -> Explorer:
    """Shows the explorer: all dialogues of a corpus with the predictions of systems.

    A single dialogue is played turn by turn, beside all systems, without the list and the filters.

    Args:
        data: The result of :func:`.explorer_data`.
        people: The same for annotators, from :func:`.annotators_data`; a switch on the page shows
            it.

    Returns:
        The explorer. A notebook shows it by itself; it works on a page of the book.
    """
    for content in (data, people):
        if content is not None and "core" not in content:
            raise BookError("the data have no 'core'. Give the result of `explorer_data`.")
    return Explorer(data, people)


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
