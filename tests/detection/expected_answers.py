"""Expected answers of the engines without a shipped run: the book's baselines, and the probe.

``python -m tests.detection.expected_answers`` writes the file again. It refuses if an engine's
answers changed without a new version. The probe is slow, because it runs a language model for each
question, so it is trained and tested on fewer dialogues than the baselines.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cradle_engines.local import probe
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import Options, Prediction, Session, load_registry
from cradle_lib.detection.models.engine import make_engine, revision_of
from cradle_lib.prompts import load_template

FILE = Path(__file__).with_suffix(".json")
BASELINES = [m.id for m in load_registry().values() if m.default and m.kind == "baseline"]
PROBE = "smollm2-135m-probe"
PROBE_LEARNS_FROM = 3


def ask_sample(name: str) -> dict[str, Any]:
    """Asks an engine about every thirtieth dialogue of the test split; the probe about two."""
    corpus, model = load_corpus("surrogate"), load_registry()[name]
    asked = corpus.dialogues[:: 300 if name == PROBE else 30]
    template = load_template(model.prompt)
    found: list[Prediction] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "_DIALOGUES", PROBE_LEARNS_FROM)
        engine = make_engine(model, corpus, Options(device="cpu"))
        engine.answer_all([Session(dialogue, template) for dialogue in asked], found.append)
    found.sort(key=lambda prediction: (prediction.dialogue, prediction.turn))
    answers: dict[str, list[str]] = {dialogue.id: [] for dialogue in asked}
    for prediction in found:
        answers[prediction.dialogue].append(prediction.answer)
    revision = revision_of(engine, model)
    return {"corpus": corpus.fingerprint, "revision": revision, "answers": answers}


def read_expected() -> dict[str, dict[str, Any]]:
    """Reads the corpus, the revision and the answers of each engine, by its id in the registry."""
    expected: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return expected


def main() -> None:
    """Writes the file again."""
    before = read_expected() if FILE.is_file() else {}
    now = {name: ask_sample(name) for name in (*BASELINES, PROBE)}
    for name, found in now.items():
        known = before.get(name, found)
        same = all(found[key] == known.get(key) for key in ("corpus", "revision"))
        if found != known and same:
            sys.exit(f"{name}: the answers changed. Raise the `version` of its engine first.")
    FILE.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
