"""The explorer of a page: its markup, and the files that stand beside the page.

CSS classes: ``cradle-explorer``, and those under it; they are in ``explorer.css``.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any, Final

from cradle_lib.corpus import Corpus
from cradle_lib.detection.journals.predictions import Predictions
from cradle_lib.display.explorer import packed
from cradle_lib.display.explorer.carried import CARRIED, FOLDER
from cradle_lib.display.theme import PALETTE, turned
from cradle_lib.errors import BookError
from cradle_lib.labels import CRISIS_TYPES

_HERE: Final = Path(__file__).parent
_SCRIPTS: Final = (
    *("data", "state", "filters", "marks", "list", "dialogue", "turn", "controls", "keys", "page"),
)
_TEXT: Final = {
    "own": "",
    "absent": "The text of this corpus is not part of this site: the marks stand alone.",
    "foreign": "This site holds text of a corpus that is not the surrogate, because its builder "
    "asked for it. It is for this machine only: do not publish it.",
}


@dataclass(frozen=True)
class Explorer:
    """Dialogues with the tags of some systems, to be looked through.

    Attributes:
        corpus: All dialogues.
        runs: Runs over them or over parts of them.
        text: Whether what is said may be shown; of the surrogate it may always.
        gold: What the labels of the corpus are called.
    """

    corpus: Corpus
    runs: tuple[Predictions, ...]
    text: bool
    gold: str = "Gold"

    @cached_property
    def files(self) -> dict[str, str]:
        """The files beside the page: name to content."""
        script = "".join(_read(f"{name}.js") for name in _SCRIPTS)
        found = {
            "explorer.js": f'(() => {{\n"use strict";\n{script}}})();\n',
            "explorer.css": _colours() + _read("explorer.css"),
            "core.js": packed.script("core", packed.core(self.corpus, self.runs)),
        }
        for number, run in enumerate(self.runs):
            name = f"answers-{number}"
            data = packed.answers(self.corpus, run, words=self.text)
            found[f"{name}.js"] = packed.script(name, data)
        for part in range(-(-len(self.corpus) // packed.PART) if self.text else 0):
            name = f"text-{part}"
            found[f"{name}.js"] = packed.script(name, packed.texts(self.corpus, part))
        return found

    @cached_property
    def folder(self) -> str:
        """Where in the site the files belong; another place for other contents."""
        digest = hashlib.sha256()
        for name, content in self.files.items():
            digest.update(f"{name}\0{content}\0".encode())
        return f"{FOLDER}/{digest.hexdigest()[:12]}"

    def _repr_html_(self) -> str:
        """The markup of the page; it holds no text of a dialogue."""
        kind = "own" if self.corpus.synthetic else "foreign" if self.text else "absent"
        return Template(_read("explorer.html")).substitute(
            folder=f"../{self.folder}/",
            help="../help.html",
            gold=html.escape(self.gold),
            text="yes" if self.text else "no",
            part=packed.PART,
            notice=f'<p class="notice" role="note">{_TEXT[kind]}</p>' if _TEXT[kind] else "",
        )

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        data = {"text/html": self._repr_html_(), "text/plain": repr(self)}
        return data, {CARRIED: {f"{self.folder}/{name}": c for name, c in self.files.items()}}

    def __repr__(self) -> str:
        """Says how much there is; never any text of a dialogue."""
        return f"Explorer of {len(self.corpus):,} dialogues and {len(self.runs)} systems"


def explore(
    corpus: Corpus, runs: Sequence[Predictions], *, text: bool = False, gold: str = "Gold"
) -> Explorer:
    """Shows all dialogues of a corpus with what systems tagged, to be looked through.

    Args:
        corpus: All dialogues.
        runs: Runs over them or over parts of them, each of another system.
        text: Whether the text of a corpus that is not the surrogate is put into the site, and what
            systems wrote about it: only for a site that is not published.
        gold: What the labels of the corpus are called.

    Returns:
        The explorer. A notebook shows it by itself; it works on a page of the book.

    Raises:
        BookError: If there is no run, or two have the same name.
    """
    if not runs:
        raise BookError("there is no run to explore. Give at least one.")
    names = [run.record.name for run in runs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise BookError(
            f"two runs are called {min(twice)!r}: their tags could not be told apart. "
            "Leave one of them out, or give it another name."
        )
    return Explorer(corpus, tuple(runs), text=text or corpus.synthetic, gold=gold)


def _colours() -> str:
    """The crisis types in the colours of the figures, for light and for dark pages."""
    chosen = dict(zip(CRISIS_TYPES, PALETTE, strict=False))
    themes = {"light": chosen, "dark": {crisis: turned(c) for crisis, c in chosen.items()}}
    return "".join(
        f'html[data-theme="{theme}"] {{ '
        + " ".join(f"--cradle-{crisis}: {colour};" for crisis, colour in colours.items())
        + " }\n"
        for theme, colours in themes.items()
    )


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
