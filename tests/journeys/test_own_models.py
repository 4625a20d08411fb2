"""Models of a user get rows and pages, on the shipped corpus and on the user's, and leave again."""

from __future__ import annotations

import json
import re
import signal
import subprocess

from ..engines.local.tiny_models import make_weights
from ..loopback import Loopback
from .checkout import Checkout
from .service import Service
from .test_own_dialogues import chat_messages

FUNCTION = """
import cradle_lib as cradle

def calm(prompt):
    return "none"

run = cradle.run_model(calm, cradle.load_corpus("chat.csv"), name="A calm function")
assert cradle.evaluate(run).to_frame()["value"].notna().any()
"""
ENTRY = """
my-tiny-entry:
  name: My tiny entry
  group: open
  engine: wave
  weights: ./my-tiny
  prompt: brief
  decoding: {max_new_tokens: 8, dtype: float32}
"""
#: The name of each model on the pages.
NAMES = [
    "my-model",
    "second-model",
    "A calm function",
    "My tiny entry",
    "./tiny-spec",
    "toy-one",
    "toy-two",
]


def change_function(clone: Checkout, name: str, body: str) -> None:
    """Edits the function `answer` of a forked notebook, as a user does in the browser."""
    path = clone.folder / "notebooks" / f"{name}.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if "def answer(prompt):" in source:
            cell["source"] = re.sub(r"(def answer\(prompt\):\n).*\n", rf"\1    {body}\n", source)
    path.write_text(json.dumps(notebook), "utf-8")


def assert_shown(clone: Checkout, names: list[str]) -> None:
    """Checks that pages show exactly these of the user's models."""
    for page in ("sections/runs", "sections/results", "sections/per-label", "sections/explore"):
        text = clone.page(page).get_text(" ")
        missing = [name for name in NAMES if (name in text) != (name in names)]
        assert not missing, (page, missing)


def until_executing(build: subprocess.Popen[str]) -> None:
    """Reads what a build prints until it executes a page."""
    assert build.stdout is not None
    printed = []
    for line in build.stdout:
        printed.append(line)
        if "executing" in line:
            return
    raise AssertionError("".join(printed))


def test_a_fork_has_a_row_and_a_page(copied: Checkout) -> None:
    copied.run(".venv/bin/cradle fork my-model")
    change_function(
        copied, "my-model", "return 'alert_ongoing' if 'cry' in prompt.current else 'none'"
    )
    copied.run("make book")
    assert_shown(copied, ["my-model"])
    assert "my-model" in copied.page("sections/my-model").get_text(" ")


def test_own_models_have_rows_until_they_are_removed(copied: Checkout) -> None:
    (copied.folder / "chat.jsonl").write_text(chat_messages(labelled=True), encoding="utf-8")
    copied.run(".venv/bin/cradle data convert chat.jsonl --out chat.csv")
    listings = [copied.folder / name for name in ("notebooks/pages.yml", "book/_toc.yml")]
    copied.run(".venv/bin/cradle fork my-model")
    before_second = [path.read_text("utf-8") for path in listings]
    copied.run(".venv/bin/cradle fork second-model")
    change_function(
        copied, "my-model", "return 'alert_ongoing' if 'cry' in prompt.current else 'none'"
    )
    change_function(
        copied, "second-model", "return 'alert_past' if 'cry' in prompt.current else 'none'"
    )
    for folder in ("my-tiny", "tiny-spec"):
        make_weights(copied.folder / folder, context=16_384)
    registry = copied.folder / "models.yml"
    before = registry.read_text("utf-8")
    registry.write_text(before + ENTRY, "utf-8")
    infer = ".venv/bin/cradle infer --corpus chat.csv --model"
    # No answer of random weights can be read: the command says so with its exit code.
    copied.run(f"{infer} hf:./tiny-spec --set max_new_tokens=2", fails=True)
    copied.run(f"{infer} my-tiny-entry", fails=True)
    with Loopback(Service) as service:
        copied.run(f"{infer} openai:toy-one --set base_url={service.url}/v1")
        copied.run(f"{infer} anthropic:toy-two --set base_url={service.url}")
    (copied.folder / "own.py").write_text(FUNCTION, "utf-8")
    copied.run(".venv/bin/python own.py")

    # A clean build, which is interrupted from the keyboard, then killed.
    copied.remove_built()
    build = "CRADLE_CORPUS=chat.csv CRADLE_TEXT=1 make book"
    code, printed = copied.interrupt(build, until_executing, signal.SIGINT)
    assert code != 0, printed
    assert "Traceback" not in printed, printed
    copied.interrupt(build, until_executing, signal.SIGKILL)
    copied.run(build)
    assert_shown(copied, NAMES)
    text = copied.page("sections/results").get_text(" ")
    assert "Keyword lexicon" in text
    assert "Micro F1" in text
    assert "has a gold label" not in text
    assert "SmolLM2-135M, tuned" not in text
    assert copied.explorer_has("I cry at my desk most days.")
    assert "executing" not in copied.run(build)

    # An edited function is asked again. Other models leave with the documented steps; a run whose
    # entry is gone is still shown, by its own record.
    change_function(copied, "my-model", "return 'none'")
    registry.write_text(before, "utf-8")
    copied.run("rm runs/*/second-model.* runs/*/*toy-one.* runs/*/hf-tiny-spec.*")
    (copied.folder / "notebooks" / "second-model.ipynb").unlink()
    for path, text in zip(listings, before_second, strict=True):
        path.write_text(text, "utf-8")
    copied.run(build)
    assert_shown(copied, ["my-model", "A calm function", "My tiny entry", "toy-two"])
    assert not (copied.folder / "book/_build/html/sections/second-model.html").exists()
    assert "my-model" in copied.page("sections/my-model").get_text(" ")
    text = copied.page("sections/runs").get_text(" ")
    assert re.search(r"= [^()]*my-model", text)  # It now predicts the same as others.
