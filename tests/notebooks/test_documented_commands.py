"""The code blocks of the README, guides and API page, and the commands in their sentences.

The real command line parses every command. `make test-journeys` also runs each command of a block
as it stands, in a clone of the project, unless `NOT_RUN` says why not. In the clone, the keyword
lexicon answers for the model of the examples, the surrogate corpus and the project's own prompt
replace the release and the paper's prompt, and `make` only prints what it would run.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from cradle_lib import paths, strict_yaml
from cradle_lib.cli import options
from cradle_lib.cli.main import app
from cradle_lib.detection import Decoding, load_registry

from ..journeys.checkout import Checkout

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "data/bundles/README.md", "data/runs/README.md"]
DOCUMENTS += [f"book/{path.name}" for path in sorted(paths.BOOK.glob("*.md"))]
DOCUMENTS += [f"notebooks/{path.name}" for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))]
MODEL = "my-model-8b"
#: Commands that are only parsed: a pattern, and the reason.
NOT_RUN = {
    r"cradle data fetch": "network",
    r"-m pip|^export |^python3 -m venv|label-studio": "installs or configures something",
    r"^vllm|^llama-server|ollama serve|^python -m sglang": "programs of others",
    r"jupyter lab": "waits for a browser",
    r"data convert chat\.jsonl --out chat\.csv": "in tests/journeys/test_own_dialogues.py",
    r"make test-gpu|bench_gpu|device_map|cluster slurm": "GPUs or SLURM",
    r"qwen|Qwen|hf:\./my-model": "weights",
    r"--model (openai[:/]|MODEL)": "a service, whose name is a placeholder",
    r"annotate .*(exports/|--study study)|my-dialogues|(?<!runs/)gold\.parquet": "a study in Label "
    "Studio: see tests/extras/label_studio/test_command_line.py",
}


def text_of(document: str) -> str:
    """Reads a page; of a notebook, its cells with text."""
    text = (paths.ROOT / document).read_text(encoding="utf-8")
    if not document.endswith(".ipynb"):
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


def blocks(language: str) -> list[tuple[str, str]]:
    """Finds all blocks of a language, with their documents."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [(name, block) for name in DOCUMENTS for block in pattern.findall(text_of(name))]


def lines_of(block: str) -> list[str]:
    """Gives the commands of a block, without comments and continued lines."""
    lines = [line.partition(" #")[0].strip() for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


COMMANDS = [(name, line) for name, block in blocks("bash") for line in lines_of(block)]
IN_SENTENCES = [
    (name, " ".join(words.split()))
    for name in DOCUMENTS
    for words in re.findall(r"`((?:\.venv/bin/)?cradle\s[^`]+)`", text_of(name))
]


def parse(words: list[str]) -> dict[str, Any]:
    """Parses a command as the program does, and gives its parameters."""
    command: Any = typer.main.get_command(app)
    context = None
    while hasattr(command, "resolve_command"):
        if not words:
            return {}  # The name of a group of commands.
        context = command.context_class(command, parent=context, info_name=command.name)
        _, command, words = command.resolve_command(context, words)
    parameters: dict[str, Any] = command.make_context(command.name, words, context).params
    return parameters


def require_settings(parameters: dict[str, Any]) -> None:
    """Checks that the names of settings exist."""
    known = {"history", "limit", "name", "engine", "base_url", "key", "prompt"}
    given, _ = options.split_settings(parameters.get("given"))
    assert {*given} <= known | {*Decoding.model_fields}
    options.parse_conventions(parameters.get("convention"))


def check(line: str) -> None:
    """Checks a command with the parser of its program, or with the file that it names."""
    program, *given = dropwhile(re.compile("[A-Z_]+=").match, shlex.split(line))
    program = program.removeprefix(".venv/bin/")
    if program == "cradle":
        require_settings(parse(given))
    elif program == "papermill":
        from papermill.cli import papermill

        papermill.make_context("papermill", given)
    elif program == "inspect":
        from inspect_ai._cli.main import inspect

        _, command, rest = inspect.resolve_command(click.Context(inspect), given)
        assert command is not None
        command.make_context("eval", rest)
    elif given[:2] == ["-m", "pip"]:
        project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        [extras] = re.findall(r"\.\[([\w,]+)\]", line)
        assert {*extras.split(",")} <= {*project["project"]["optional-dependencies"]}
        assert (paths.ROOT / given[given.index("-c") + 1]).is_file()
    elif given[:1] == ["-m"] and given[1].startswith("benchmarks."):
        source = paths.ROOT / f"{given[1].replace('.', '/')}.py"
        assert all(f'"{word}"' in source.read_text("utf-8") for word in given if word[:2] == "--")
    elif given[:3] == ["-m", "pytest", "-m"]:
        assert f'"{given[3]}: ' in (paths.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    else:
        assert program == "make" or why_not(line), "no way to check this command"


def why_not(line: str) -> str | None:
    """Gives the reason why a command is not run."""
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, line)), None)


@pytest.mark.parametrize(("document", "line"), COMMANDS)
def test_a_command_of_a_block_is_accepted(document: str, line: str) -> None:
    check(line)


@pytest.mark.parametrize(("document", "line"), IN_SENTENCES)
def test_a_command_in_a_sentence_exists(document: str, line: str) -> None:
    words = [word for word in shlex.split(line)[1:] if word not in ("...", "--help", "--version")]
    try:
        require_settings(parse(words))
    except typer.BadParameter as error:
        # A sentence may name only the option that it is about.
        if type(error).__name__ != "MissingParameter":
            raise


@pytest.mark.parametrize(("document", "block"), blocks("yaml"))
def test_an_entry_is_accepted(document: str, block: str, tmp_path: Path) -> None:
    entries = strict_yaml.load(block)
    if [*entries] == ["decoding"]:
        assert Decoding.model_validate(entries["decoding"]).settings
        return
    path = tmp_path / "models.yml"
    path.write_text(block, encoding="utf-8")
    assert [*load_registry(path)] == [*entries]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A clone of the project with the stand-ins, in which all blocks are run."""
    made = Checkout.clone(tmp_path_factory.mktemp("documented") / "cradle")
    folder = made.folder
    with (folder / "models.yml").open("a", encoding="utf-8") as registry:
        registry.write(f"\n{MODEL}: {{name: My Model 8B, group: baseline, engine: keyword}}\n")
    (folder / "data" / "release").mkdir()
    for split in ("train", "dev", "test"):
        shutil.copy(paths.SURROGATE / f"{split}.parquet", folder / "data" / "release")
    prompt = folder / "data" / "prompts" / "paper.txt"
    prompt.parent.mkdir(exist_ok=True)
    shutil.copy(folder / "cradle_lib" / "prompts" / "templates" / "turn.txt", prompt)
    [chat] = re.findall(r"```json\n(.*?)```", text_of("book/own-dialogues.md"), re.DOTALL)
    (folder / "chat.jsonl").write_text(chat, encoding="utf-8")
    make = folder / ".venv" / "bin" / "make"
    make.write_text(f'#!/bin/sh\nexec {shutil.which("make")} --dry-run "$@"\n', encoding="utf-8")
    make.chmod(0o755)
    (folder / "book" / "_build").mkdir()  # By `make book`.
    yield made
    shutil.rmtree(folder)


@pytest.mark.journeys
def test_all_commands_of_blocks_run_as_they_stand(clone: Checkout) -> None:
    others = "book/own-dialogues.md"  # Its examples and what they print have their own test.
    lines = dict.fromkeys(line for name, line in COMMANDS if name != others and not why_not(line))
    for line in lines:
        if re.search(r"cluster local|--shard 0/", line):  # Other ways to make the same run.
            for journal in (clone.folder / "runs" / "surrogate-test").glob(f"{MODEL}*"):
                journal.unlink()
        clone.run(f'export PATH="$PWD/.venv/bin:$PATH"\n{line}')


# The engine of a package that nobody has is tested in tests/detection/models/test_own_engine.py.
@pytest.mark.parametrize(
    ("document", "block"), [found for found in blocks("python") if "my_sdk" not in found[1]]
)
def test_a_python_example_runs_as_it_stands(document: str, block: str, clone: Checkout) -> None:
    clone.run(f".venv/bin/python -c {shlex.quote(block)}")


def test_each_reason_is_in_use() -> None:
    assert {why_not(line) for _, line in COMMANDS} == {None, *NOT_RUN.values()}
