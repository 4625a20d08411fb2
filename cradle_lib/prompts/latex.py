"""Imports the paper's own prompts from its LaTeX source, for users who have it.

The paper's licence lets its facts travel, not its sentences, so that the project ships
prompts of its own. The source archive holds the prompts as small ``.tex`` files that
``filecontents*`` wrote, or as ``filecontents*`` environments inside the main file, with
or without LaTeX escapes. An import turns each into a text template under
``data/prompts/``, which git ignores.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.errors import PromptError
from cradle_lib.files import write_text
from cradle_lib.prompts.template import (
    DETECTION_SLOTS,
    INDEX,
    SHIPPED,
    Template,
    imported_hashes,
    parse_template,
    read_text,
)

DETECTION_SOURCE: Final = "llm_eval_prompt"
# The other prompts serve generation; they keep whatever slots they have.
OTHER_SOURCES: Final = ("llm_system_prompt", "fewshot", "llm_user_prompt", "training_set_prompt")

_HISTORY_NAMES: Final = re.compile(r"\{(?:dialogue_history|dialog_history|history)\}")
_CURRENT_NAMES: Final = re.compile(r"\{(?:current_turn|current_utterance)\}")
_BANNER: Final = re.compile(r"\A(?:%%[^\n]*\n)+")
_WRAPPER: Final = re.compile(
    r"\\(?:begin|end)\{(?:filecontents\*?|verbatim\*?|Verbatim|lstlisting|minted|quote)\}"
    r"(?:\[[^\]]*\])?(?:\{[^}]*\})?[ \t]*\n?"
)
_STYLED: Final = re.compile(r"\\(text(?:bf|it|tt|sf)|emph|texttt)\{([^{}]*)\}")
_SYMBOLS: Final = {
    r"\textbackslash{}": "\\",
    r"\textgreater{}": ">",
    r"\textgreater": ">",
    r"\textless{}": "<",
    r"\textless": "<",
    r"\textendash{}": "–",  # noqa: RUF001
    r"\textemdash{}": "—",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\rightarrow": "→",
    r"\ldots{}": "...",
    r"\ldots": "...",
    r"\newline": "\n",
    r"\par": "\n",
}
_ESCAPED: Final = re.compile(r"\\([_%&#${}])")


def import_latex(folder: Path, name: str = "paper") -> list[Path]:
    """Imports the paper's LaTeX prompt files as templates.

    Args:
        folder: The unpacked LaTeX source.
        name: What to call the detection prompt; the others become ``NAME-FILE``, such as
            ``paper-fewshot``.

    Returns:
        The templates' files, the detection prompt first. Their hashes are kept beside them.

    Raises:
        PromptError: If the name can't be used, the folder lacks the detection prompt, a
            file is not UTF-8, or the detection prompt lacks a slot.
        CradleError: If a template can't be written.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise PromptError(f"prompt name {name!r}: expected lower-case letters, digits, - and _")
    if (SHIPPED / f"{name}.txt").exists():
        raise PromptError(f"prompt name {name!r} is that of a prompt that ships. Choose another.")
    if not folder.is_dir():
        raise PromptError(f"{folder}: there is no such folder. Name the unpacked LaTeX source.")
    raw = _find(folder, DETECTION_SOURCE)
    if raw is None:
        raise PromptError(
            f"{folder}: holds neither {DETECTION_SOURCE}.tex nor a .tex file with that "
            "filecontents environment. Name the folder with the paper's LaTeX source."
        )
    text = _CURRENT_NAMES.sub("{current_turn}", _HISTORY_NAMES.sub("{history}", plain_text(raw)))
    imported = {name: parse_template(name, text, DETECTION_SLOTS)}
    for source in OTHER_SOURCES:
        if (raw := _find(folder, source)) is not None:
            other = f"{name}-{source.replace('_', '-')}"
            imported[other] = parse_template(other, plain_text(raw), slots=None)
    _save(imported)
    return [paths.PROMPTS / f"{template}.txt" for template in imported]


def plain_text(latex: str) -> str:
    r"""Takes the LaTeX out of a prompt file, or out of a ``filecontents*`` environment.

    The banner of ``filecontents*`` and wrapping environments go. Text that was verbatim stays as
    it is; in escaped text (``\_`` and the like) escapes, styles and symbols become plain
    characters, bold becomes ``**bold**``.
    """
    text = _WRAPPER.sub("", _BANNER.sub("", latex.replace("\r\n", "\n").lstrip("\n")))
    if re.search(r"\\(?:[_%&#{}]|text[a-z]+|emph)", text):
        previous = ""
        while previous != text:
            previous = text
            text = _STYLED.sub(lambda m: f"**{m[2]}**" if m[1] == "textbf" else m[2], text)
        for command, symbol in _SYMBOLS.items():
            text = text.replace(command, symbol)
        text = text.replace("\\\\\n", "\n").replace("$→$", "→")
        text = _ESCAPED.sub(r"\1", text)
    return text.strip("\n")


def _find(folder: Path, source: str) -> str | None:
    own = folder / f"{source}.tex"
    if own.is_file():
        return read_text(own)
    environment = re.compile(
        r"\\begin\{filecontents\*?\}(?:\[[^\]]*\])?\{" + re.escape(source) + r"(?:\.tex)?\}[ \t]*\n"
        r"(.*?)\\end\{filecontents\*?\}",
        re.DOTALL,
    )
    for path in sorted(folder.rglob("*.tex")):
        # A file of another encoding matters only if it holds the prompt.
        if environment.search(read_text(path, errors="replace")):
            found = environment.search(read_text(path))
            return found and found[1]
    return None


def _save(imported: dict[str, Template]) -> None:
    hashes = dict(imported_hashes())
    for template in imported.values():
        write_text(paths.PROMPTS / f"{template.name}.txt", template.text + "\n")
        hashes[template.name] = template.hash
    index = {name: {"hash": value} for name, value in sorted(hashes.items())}
    write_text(paths.PROMPTS / INDEX, json.dumps(index, indent=2) + "\n")
