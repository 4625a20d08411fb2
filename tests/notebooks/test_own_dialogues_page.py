"""The guide *Your own dialogues*: its examples are run as printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.corpus.release import read_mask
from cradle_lib.display.explorer.explorer import Explorer
from cradle_lib.display.table import Table
from cradle_lib.labels import format_mask

from ..cli.in_process import invoke
from .test_notebooks import show

PAGE = (paths.ROOT / "book" / "own-dialogues.md").read_text(encoding="utf-8")
SECTIONS = {
    title: text
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    if "```bash" in text
}


def test_the_spellings_of_labels_in_the_guide_are_read() -> None:
    table = PAGE.partition("| label | may also be written |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`\w+`|no label) \| (.*) \|$", table, re.MULTILINE)
    assert len(rows) == 9
    for label, others in rows:
        for other in re.findall(r"[*`]([^*`]+)[*`]", others):
            if other != "passive":
                assert format_mask(read_mask(other)) == label.strip("`").replace("no label", "none")


@pytest.mark.parametrize(
    ("title", "labelled"),
    [
        ("Chat messages", False),
        ("A table with a speaker column", True),
        ("A transcript", False),
        ("An export of a messenger", False),
        ("Single texts", True),
    ],
)
def test_an_example_runs_as_printed(
    title: str, labelled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SECTIONS[title]
    [name] = set(re.findall(r"`([\w-]+\.(?:jsonl|csv|txt))`", text))
    file, *printed = re.findall(r"```(?:json|text)\n(.*?)```", text, re.DOTALL)
    [commands] = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    Path(name).write_text(file, encoding="utf-8")
    *lines, build = commands.splitlines()
    output = ""
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == ".venv/bin/cradle"
        if arguments[0] == "infer":
            arguments += ["--out", str(tmp_path / "runs")]
        done = invoke(*arguments)
        assert done.exit_code == 0, (line, done.output, done.exception)
        output += done.stdout
    found = [line.split() for line in output.splitlines()]
    for line in "".join(printed).splitlines():
        assert line.split() in found, line
    corpus = lines[0].split()[lines[0].split().index("--out") + 1]
    assert build == f"CRADLE_TEXT=1 CRADLE_CORPUS={corpus} make book"
    assert bool(load_corpus(corpus).gold.any()) is labelled
    assert ("nothing to score against" in output) is not labelled
    values = {"corpus": str(tmp_path / corpus), "models": ["keyword"], "text": True, "draws": 20}
    [explorer] = [i for i in show("explore", values) if isinstance(i, Explorer)]
    texts = [turn.text for turn in load_corpus(corpus).turns]
    assert all(turn.partition("\n")[0] in str(explorer.data) for turn in texts)
    if labelled:
        assert any(isinstance(item, Table) for item in show("results", values))
