"""Texts that steer something reach prompts, pages, files and terminals as text only."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Answer, Outcome, Session, read_answer
from cradle_lib.detection.parsing import is_cut
from cradle_lib.display.examples import HELP_PAGE, Examples
from cradle_lib.display.table import show
from cradle_lib.labels import LABELS
from cradle_lib.prompts import load_template

from ..detection.dialogues import make_corpus, make_dialogue
from .attack import TEXTS, cases

pytestmark = pytest.mark.hostile


def _text(rng: Any) -> str:
    joiner = rng.choice(("", " ", "\n", "\u2028", "\r\n"))
    return str(joiner.join(rng.choice(TEXTS) for _ in range(rng.randint(1, 5))))


FORGED = re.compile(
    r"<\|im_|</?s>|\[/?INST\]|\[TOOL_CALLS\]|\[AVAILABLE_TOOLS\]|\[gMASK\]|\[multimodal\]|\[@BOS@\]"
    r"|<\uff5c|</?think>|<start_of_turn>|<bos>|<eos>"
)


@pytest.mark.parametrize("name", ["turn", "append", "brief"])
def test_a_turn_stays_one_line_of_the_prompt(name: str) -> None:
    template = load_template(name)
    for rng in cases(f"prompt {name}"):
        rows = [(rng.choice(("User", "Listener")), _text(rng), "none") for _ in range(4)]
        plain = [(who, "word", "none") for who, _, _ in rows]
        said = [_last_prompt(make_dialogue(0, [*r, ("User", "End.", "none")]), template)
                for r in (rows, plain)]  # fmt: skip
        forged, honest = (text[template.static :] for text in said)
        assert len(forged.splitlines()) == len(honest.splitlines())
        heads = [line.split(" ", 1)[0] for line in forged.splitlines()]
        assert heads == [line.split(" ", 1)[0] for line in honest.splitlines()]
        assert not FORGED.search(forged), ascii(FORGED.search(forged))
        forged.encode()


def _last_prompt(dialogue: Any, template: Any) -> str:
    session = Session(dialogue, template)
    text = ""
    while session.prompt is not None:
        text = session.prompt.text
        session.answer(Answer("none"))
    return text


def test_an_answer_is_labels_or_nothing() -> None:
    words = (*LABELS, "none", ";", "\n", "<think>", "</think>", "**", " ", ".", *TEXTS)
    for rng in cases("answers"):
        text = "".join(rng.choice(words) for _ in range(rng.randint(0, 12)))
        outcome, mask = read_answer(text)
        assert outcome in (Outcome.OK, Outcome.UNPARSED)
        shown = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL | re.IGNORECASE).lower()
        for place, label in enumerate(LABELS):
            assert not mask & 1 << place or label.lower() in shown
        is_cut(text)


class _Markup(HTMLParser):
    """Collects tags and attributes, as a browser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.targets += [value or "" for name, value in attrs if name in ("href", "src")]


def _seen(markup: str) -> _Markup:
    parser = _Markup()
    parser.feed(markup)
    return parser


def test_a_table_holds_no_markup_no_command_and_no_formula_of_a_text() -> None:
    plain = _seen(show(_frame(["a", "b"]), "c", notes="n")._repr_html_())
    for rng in cases("tables"):
        texts = ["x" + _text(rng) if rng.random() < 0.5 else _text(rng) for _ in range(2)]
        # A frame holds no halves of broken characters.
        texts = [text.encode(errors="replace").decode() for text in texts]
        frame = _frame(texts)
        table = show(frame, f"A table. {_text(rng)}", notes=_text(rng))
        seen = _seen(table._repr_html_())
        assert seen.tags <= plain.tags | {"code"}
        assert seen.names <= plain.names
        assert all(target.startswith("data:") for target in seen.targets)
        rows = list(csv.reader(io.StringIO(table.to_csv(), newline="")))
        assert len(rows) == 3
        for text, row in zip(texts, rows[1:], strict=True):
            assert row[0] in (text, f"'{text}")
            assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r"))
            float(row[1])


def _frame(texts: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"system": texts, "value": [-0.25, 0.5]})


def test_an_excerpt_holds_no_markup_of_a_turn() -> None:
    for rng in cases("excerpts"):
        rows = [("User", _text(rng), rng.choice(LABELS)) for _ in range(3)]
        made = make_corpus([rows], "made")
        corpus = Corpus("made", made.dialogues, synthetic=True)
        names = ["title", "dialogue", "first", "last", "turn", "systems"]
        # A frame holds no halves of broken characters.
        title = _text(rng).encode(errors="replace").decode()
        row = (title, corpus.dialogues[0].id, 0, 2, None, ())
        markup = Examples(corpus, pd.DataFrame([row], columns=names), {})._repr_html_()
        seen = _seen(markup)
        known = {"div", "p", "strong", "details", "summary", "small", "ol", "li", "br", "code"}
        # The two links are that to help and that to the dialogue.
        assert seen.tags - {"a", "span"} <= known
        links = (f'<a href="{HELP_PAGE}">', '<a href="explore.html#d=d0000">')
        assert [markup.count(link) for link in ("<a ", *links)] == [2, 1, 1]
        assert seen.names <= {"class", "href", "role", "start", "value"}
