"""The banner over each page with numbers: their origin and their limits."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.display.cells import with_code
from cradle_lib.display.origin import PAGE
from cradle_lib.version import commit, library_version

if TYPE_CHECKING:
    from cradle_lib.display.run import Run
    from cradle_lib.record import Record

SURROGATE_NOTICE: Final = (
    "These dialogues are a surrogate, written by this project so that everything runs. "
    "A score on them says nothing about a model's worth: what you see is how the analysis works. "
    "For a book on the real data run `cradle data fetch`, then `CRADLE_CORPUS=hub make book`."
)
SIMULATED_NOTICE: Final = (
    "The annotators of the surrogate are simulated, and made to agree as far as the paper states: "
    "this shows the procedure at work, and not how clinicians agree."
)


@dataclass(frozen=True, slots=True)
class Banner:
    """What a page's numbers rest on.

    Attributes:
        rows: Term and value, in the order shown; a value is text, never markup.
        notices: Warnings about the numbers by their title, such as that of the surrogate.
        signature: The signature of the scores; it is long, so that a reader unfolds it.
    """

    rows: tuple[tuple[str, str], ...]
    notices: tuple[tuple[str, str], ...] = ()
    signature: str = ""

    def _repr_html_(self) -> str:
        notices = "".join(
            f'<p class="cradle-surrogate"><strong>{title}.</strong> {with_code(text)}</p>'
            for title, text in self.notices
        )
        rows = "".join(
            f"<div><dt>{html.escape(term)}</dt><dd>{html.escape(value)}</dd></div>"
            for term, value in self.rows
        )
        if self.signature:
            rows += (
                "<div><dt>Signature</dt><dd><details><summary>How it was scored</summary>"
                f"{html.escape(self.signature)}</details></dd></div>"
            )
        return f'<div class="cradle-banner" role="note">{notices}<dl>{rows}</dl></div>'

    def __repr__(self) -> str:
        """The same as plain text."""
        lines = [text for _, text in self.notices]
        lines += [f"{term}: {value}" for term, value in self.rows]
        return "\n".join([*lines, *[f"Signature: {self.signature}"] * bool(self.signature)])


def banner(
    *,
    corpus: Corpus,
    record: Record | None = None,
    signature: object | None = None,
    simulated: bool = False,
    runs: Sequence[Run] = (),
) -> Banner:
    """Says what a page's numbers rest on; the page's headline and downloads name it from then on.

    Args:
        corpus: The corpus of the page.
        record: The record of the run, on a page about one model.
        signature: The signature of its scores, on a page with scores.
        simulated: Whether its annotations are those that ship with the surrogate.
        runs: The runs of the page, as they were stored; unfinished ones are named in a notice.

    Returns:
        A banner, which a notebook shows as it is. The commit is that of the moment: a page
        keeps the commit from which it was executed. Where a run was made from another one,
        both are named.
    """
    PAGE.corpus, PAGE.simulated = corpus, simulated
    here = _commit(*commit())
    rows = [("Corpus", f"{corpus.name} ({corpus.fingerprint}), {_dialogues(len(corpus))}")]
    if record is not None:
        chosen = "" if record.dialogues is None else f", {_dialogues(len(record.dialogues))} chosen"
        # The record has long checksums in full.
        revision = re.sub(r"[0-9a-f]{16,}", lambda found: found[0][:12], record.revision or "")
        at = f" at {revision}" if revision else ""
        rows.append(("Model", f"{record.name}{at} ({record.engine} engine{chosen})"))
        made = _commit(record.commit, record.dirty)
        if made != here:
            rows.append(("Run made at", f"commit {made}, cradle_lib {record.version}"))
    rows.append(("Page made at", f"commit {here}, cradle_lib {library_version()}"))
    notices = [("Surrogate", SURROGATE_NOTICE)] * corpus.synthetic
    notices += [("Simulated", SIMULATED_NOTICE)] * simulated
    for run in runs:
        if not run.is_finished:
            size = len(corpus if run.record.dialogues is None else run.record.dialogues)
            text = (
                f"{run.record.name}: {len(run.corpus):,} of {_dialogues(size)} answered so far; "
                "the page shows these only. `cradle infer` goes on."
            )
            notices.append(("Not finished", text))
    return Banner(tuple(rows), tuple(notices), str(signature or ""))


def _dialogues(number: int) -> str:
    return "1 dialogue" if number == 1 else f"{number} dialogues"


def _commit(head: str, dirty: bool) -> str:
    return f"{head} with local changes" if dirty else head
