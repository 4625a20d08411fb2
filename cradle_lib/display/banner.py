"""The banner over each page with numbers: their origin and their limits."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cradle_lib.arguments import checked
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.display.cells import with_code
from cradle_lib.display.notice import PAGE
from cradle_lib.version import commit, library_version

#: Address of the explorer, relative to the other executed pages.
EXPLORER: Final = "explore.html"
SURROGATE_NOTICE: Final = (
    "These dialogues are a surrogate: this project wrote them so that the whole analysis can run. "
    "A score on them says nothing about a model's quality; it only shows how the analysis works. "
    "For the book on the real data, run `cradle data fetch`, then `CRADLE_CORPUS=hub make book`."
)
MODELS_NOTICE: Final = (
    "The annotators of the surrogate are language models that read the dialogues without their "
    "plans. No clinician has read them: the page shows the procedure, not how clinicians agree."
)


@dataclass(frozen=True, slots=True)
class Banner:
    """The origin of a page's numbers: a summary line that unfolds to the details.

    All attributes are plain text, never markup.

    Attributes:
        line: Parts of the summary line: corpus, runs, commit.
        rows: Term and value of each detail, in the order shown.
        notices: Short title (for the summary line) and text of each warning about the numbers.
        explored: Whether the banner links to the explorer, which shows the runs of the page.
    """

    line: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]
    notices: tuple[tuple[str, str], ...] = ()
    explored: bool = False

    def _repr_html_(self) -> str:
        titles = dict.fromkeys(title for title, _ in self.notices)
        line = [f"<strong>{title}</strong>" for title in titles]
        line += map(html.escape, self.line)
        link = f'<a href="{EXPLORER}">Explorer</a>' if self.explored else ""
        notices = "".join(f"<p>{with_code(text)}</p>" for _, text in self.notices)
        rows = "".join(
            f"<div><dt>{html.escape(term)}</dt><dd>{html.escape(value)}</dd></div>"
            for term, value in self.rows
        )
        return (
            f'<div class="cradle-banner" role="note"><details><summary>{" · ".join(line)}</summary>'
            f"{notices}<dl>{rows}</dl></details>{link}</div>"
        )

    def __repr__(self) -> str:
        """Writes the notices and details as plain text."""
        lines = [text for _, text in self.notices]
        return "\n".join([*lines, *(f"{term}: {value}" for term, value in self.rows)])


@checked
def banner(
    *,
    corpus: Corpus,
    signature: object | None = None,
    model_annotators: bool = False,
    runs: Sequence[Any] = (),
) -> Banner:
    """Makes the banner of a page, and sets the corpus that its headline and downloads name.

    Args:
        corpus: The corpus of the page.
        signature: The signature of the page's scores, if it has scores.
        model_annotators: Whether the page uses the surrogate's annotations by language models.
        runs: The stored :class:`.Predictions` of the page. Each unfinished run gets a notice.

    Returns:
        The banner, which a notebook displays. It names the current commit, so an executed page
        keeps the commit from which it was executed.
    """
    PAGE.corpus, PAGE.model_annotators = corpus, model_annotators
    head, dirty = commit()
    here = f"commit {head}{' with local changes' * dirty}"
    names = [run.record.name for run in runs]
    line = [f"{corpus.name} ({corpus.fingerprint})"]
    line += [names[0] if len(names) == 1 else f"{len(names)} runs"] * bool(names)
    rows = [("Corpus", f"{line[0]}, {_dialogues(len(corpus))}")]
    rows += [("Runs", "; ".join(names))] * bool(names)
    rows.append(("Page made from", f"{here}, cradle_lib {library_version()}"))
    rows += [("How it was scored", str(signature))] * bool(signature)
    notices = [("Surrogate corpus", SURROGATE_NOTICE)] * corpus.synthetic
    notices += [("Language models as annotators", MODELS_NOTICE)] * model_annotators
    for run in runs:
        if not run.is_finished:
            size = len(corpus if run.record.dialogues is None else run.record.dialogues)
            text = (
                f"{run.record.name}: {len(run.corpus):,} of {_dialogues(size)} answered so far; "
                "the page shows these only. `cradle infer` resumes the run."
            )
            notices.append(("Not finished", text))
    return Banner((*line, here), tuple(rows), tuple(notices), bool(runs))


def _dialogues(number: int) -> str:
    return "1 dialogue" if number == 1 else f"{number} dialogues"
