"""The order in which a page shows the cells of its executed notebook: results first.

The headline and the banner follow the title, before the text of the first cell, with lines about
runs that could not be read. Code is folded below the output that it makes: cells without output are
joined with the next one that has some, and the last ones with the last code of the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cradle_lib.book.notebooks.notebook import find_title
from cradle_lib.detection.runs.find_runs import NOT_SHOWN
from cradle_lib.display.notice import Notice

#: Tag of the cell whose output opens the page.
FINDING: Final = "finding"
#: Tag of the cell with the lines about runs that could not be read.
UNREADABLE: Final = "unreadable"
#: Tag of the cell that papermill adds, with the values of the parameters.
INJECTED: Final = "injected-parameters"
# Cells with one of these tags are not rearranged.
_AS_WRITTEN: Final = {"show-input", "hide-cell", "remove-cell"}
_BANNER: Final = 'class="cradle-banner"'

Cell = dict[str, Any]


def as_page(cells: Sequence[Cell]) -> list[Cell]:
    """Arranges the cells of an executed notebook.

    Text on standard error is dropped, except the lines about runs that are not shown.
    """
    headline: list[Cell] = []
    banner: list[Cell] = []
    body: list[Cell] = []
    code: list[str] = []
    last: Cell | None = None
    for cell in cells:
        tags = tags_of(cell)
        # Warnings and progress bars of libraries do not belong on the page.
        outputs = [each for each in cell.get("outputs", ()) if each.get("name") != "stderr"]
        if cell["cell_type"] != "code" or _AS_WRITTEN & {*tags}:
            body.append(cell | ({"outputs": outputs} if "outputs" in cell else {}))
            continue
        code.append("".join(cell["source"]).strip())
        if FINDING in tags:
            headline += outputs
            continue
        banner += [output for output in outputs if _is_banner(output)]
        outputs = [output for output in outputs if not _is_banner(output)]
        if outputs:
            last = _code_cell(code)
            body += [_output_cell(outputs, tags), last]
            code = []
    if code:
        if last is None:
            body.append(last := _code_cell([]))
        last["source"] = "\n\n".join(filter(None, [last["source"], *code]))
    opening = [_output_cell(headline, [FINDING])] * bool(headline)
    opening += [_output_cell(banner)] * bool(banner)
    unreadable = [_displayed(line) for line in _lines_about_runs(cells)]
    opening += [_output_cell(unreadable, [UNREADABLE])] * bool(unreadable)
    return _numbered(_with_opening(body, opening))


def tags_of(cell: Mapping[str, Any]) -> list[str]:
    """The tags of a cell."""
    return list(cell["metadata"].get("tags", []))


def _lines_about_runs(cells: Sequence[Cell]) -> list[str]:
    """Finds the lines on standard error about runs that are not shown, each once."""
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    written = ["".join(output["text"]) for output in outputs if output.get("name") == "stderr"]
    return list(dict.fromkeys(re.findall(f"{NOT_SHOWN}.*", "".join(written))))


def _displayed(line: str) -> dict[str, Any]:
    notice = Notice(line)
    shown = {"text/html": notice._repr_html_(), "text/plain": repr(notice)}
    return {"output_type": "display_data", "metadata": {}, "data": shown}


def _is_banner(output: Mapping[str, Any]) -> bool:
    return _BANNER in "".join(output.get("data", {}).get("text/html", ""))


def _with_opening(cells: list[Cell], opening: list[Cell]) -> list[Cell]:
    """Inserts cells between the title and the text below it, or at the top if there is no title."""
    title = find_title(cells)
    if title is None:
        return [*opening, *cells]
    place, heading = title
    text = heading.string
    above, below = text[: heading.end()].strip(), text[heading.end() :].strip()
    intro = [{"cell_type": "markdown", "metadata": {}, "source": below}] * bool(below)
    return [*cells[:place], cells[place] | {"source": above}, *opening, *intro, *cells[place + 1 :]]


def _numbered(cells: Sequence[Cell]) -> list[Cell]:
    """Removes metadata other than tags, and gives cells consecutive ids, the same in each run."""
    for number, cell in enumerate(cells):
        cell["metadata"] = {"tags": tags_of(cell)}
        cell["id"] = f"cell-{number}"
    return list(cells)


def _code_cell(parts: Sequence[str]) -> Cell:
    source = "\n\n".join(filter(None, parts))
    metadata = {"tags": ["hide-input"]}
    return _cell(source, [], metadata)


def _output_cell(outputs: Sequence[Any], tags: Sequence[str] = ()) -> Cell:
    # Without code the cell would not be rendered.
    metadata = {"tags": [*(tag for tag in tags if tag != "hide-input"), "remove-input"]}
    return _cell("# The code is below.", outputs, metadata)


def _cell(source: str, outputs: Sequence[Any], metadata: dict[str, Any]) -> Cell:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata,
        "outputs": list(outputs),
        "source": source,
    }
