"""Every page is built for small and unusual corpora, and explains missing results."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import find_model, load_registry
from cradle_lib.detection.runs.run import run
from cradle_lib.display.banner import Banner
from cradle_lib.display.choice import Choice
from cradle_lib.display.examples import Examples
from cradle_lib.display.explorer.explorer import Explorer
from cradle_lib.display.notice import Notice
from cradle_lib.display.table import Table
from cradle_lib.display.theme import Picture

from .test_notebooks import MODELS, SOURCES, show
from .tiny_corpora import SCRIPTS, write

# Pages about the annotation study, the engines and the probe set, whatever the book's corpus is.
OWN_DATA = {"agreement", "probes", "speed"}
PAGES = [path.stem for path in SOURCES if path.stem not in OWN_DATA]
# All pages are built for these corpora. Others are built with a page if it is in EXPLANATIONS, or
# in the hostile tests.
NO_USER_TURN, ORDINARY = "no user turn at all", "twelve ordinary dialogues"
# Pages with one table about the corpus; their other results come from files.
ONE_TABLE = {"construction", "implied", "label-your-own", "training"}
RESULTS = (Table, Picture, Choice, Explorer, Examples)
# Explanation of missing results by page and corpus.
EXPLANATIONS = {
    ("timing", "confirms only"): "No user turn of confirms-only has a gold alert. Not shown: Al",
    ("results", "no labels"): "No user turn of no-labels has a gold label. Not shown: Micro F1 at",
    ("results", "partly labelled"): "3 of the 7 dialogues have no gold labels and no scores.",
    (
        "alarm-burden",
        "not labelled",
    ): "No user turn of not-labelled has gold labels, not even `none`",
    ("errors", "no labels"): "No user turn of no-labels has a gold label. Not shown: Every er",
    ("statistics", "not labelled"): "4 dialogues with 22 turns have no gold labels.",
    ("explore", "partly labelled"): "correct on 10 of 12 user turns",
    ("results", "one label"): "15 of the 16 labels are never gold on the scored turns",
    ("results", "one dialogue"): "with 1 dialogue; no intervals",
    ("who-is-better", "one dialogue"): "so the detectable difference is unknown",
    ("alarm-burden", "every user turn labelled"): "has a gold label. Not shown: Recall agains",
    ("home", "no labels"): "no-labels has no gold labels, so no system has a score.",
    ("errors", NO_USER_TURN): "has a user turn. Not shown: Errors at turn level",
    ("conventions", NO_USER_TURN): "has a user turn. Not shown: Macro F1 at turn",
    ("statistics", ORDINARY): "corpus does not have both",
    ("statistics", "one dialogue"): "has no column for scenarios.",
    ("statistics", "no labels"): "Other dashes: no-labels states no scenario or timing.",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """A function that returns the file of a corpus and the folder of the baselines' runs."""
    folder = tmp_path_factory.mktemp("small")
    runs = folder / "runs"

    @cache
    def make(name: str) -> tuple[Path, Path]:
        path = write(name, folder)
        corpus = load_corpus(path)
        for model in MODELS:
            run(find_model(model, load_registry()), corpus, out=runs)
        return path, runs

    return make


@pytest.mark.parametrize(
    ("page", "name"),
    [
        pytest.param(
            page,
            name,
            id=f"{page}-{name}",
            marks=[]
            if name in (NO_USER_TURN, ORDINARY) or (page, name) in EXPLANATIONS
            else [pytest.mark.hostile],
        )
        for page in PAGES
        for name in SCRIPTS
        if page not in ONE_TABLE or name in (ORDINARY, NO_USER_TURN)
    ],
)
def test_a_page_is_built_and_explains_missing_results(
    page: str, name: str, made: Callable[[str], tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, runs = made(name)
    monkeypatch.setattr(paths, "RUNS", runs)
    # A small training corpus for the page that trains a model.
    training = str(made(ORDINARY)[0]) if page == "add-a-model" else ""
    values = {"corpus": str(corpus), "training": training, "draws": 50}
    values |= {"models": MODELS, "model": "keyword"}
    shown = show(page, values)
    assert isinstance(shown[0], Banner)
    assert any(isinstance(item, (*RESULTS, Notice)) for item in shown)
    texts = {text.removeprefix("-") for script in SCRIPTS[name] for text, _ in script}
    notes: list[str] = []
    for item in shown:
        visible = visible_text(item)
        assert not re.search(r"\bnan\b|>nan|nan<", visible), visible[:400]
        # The file is not the surrogate, so its text must not be shown.
        assert not any(text in visible for text in (*texts, "Surrogate")), visible[:400]
        if isinstance(item, Table):
            assert len(item.frame), item.caption
        notes += [item.message] if isinstance(item, Notice) else getattr(item, "notes", ())
    assert any(EXPLANATIONS.get((page, name), "") in sentence for sentence in [*notes, ""]), notes
    if name == ORDINARY:
        assert any(isinstance(item, RESULTS) for item in shown)
        assert not [s for s in notes if re.match(r"(n/a )?(No|Every) (user turn|dialogue) of", s)]


def test_the_training_page_names_the_corpora_of_the_training(
    made: Callable[[str], tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, runs = made(ORDINARY)
    monkeypatch.setattr(paths, "RUNS", runs)
    shown = show("training", {"corpus": str(corpus), "draws": 20})
    tables = [item for item in shown if isinstance(item, Table)]
    record = json.loads((paths.DATA / "adapters/smollm2-135m-tuned/training.json").read_bytes())
    short = pd.read_csv(paths.DATA / "short_texts" / "short_texts.csv")["dialogue_id"].nunique()
    [overlap] = [table for table in tables if table.caption.startswith("Overlap of twelve")]
    assert {*overlap.groups} == {record["corpus"], "short_texts"}
    learned = f"{record['dialogues'] - short:,} dialogues of {record['corpus']}"
    assert f"Training on {learned} and {short:,} short texts took" in shown[-1].message
    [trainings] = [table for table in tables if table.caption.startswith("Trainings on surr")]
    assert [row[1].text for row in trainings.rows] == ["1,500", "2,000", "2,000"]
    assert [row[2].text for row in trainings.rows] == ["0", "0", f"{short:,}"]
    # Dev is the surrogate's, and its labelled first turns are counted.
    first = load_corpus("surrogate", "dev").to_frame().dropna(subset="position")
    first = first.groupby("dialogue")["labels"].first()
    confirmed, labelled = first.str.contains("confirm").sum(), first.ne("none").sum()
    assert f"{labelled} labelled first turns, {confirmed} have a confirm" in trainings.notes[0]
    odds = [table for table in tables if "odds" in table.frame]
    assert "surrogate-dev" in odds[0].caption
    assert {*odds[0].frame["corpus"]} == {"surrogate-dev"}


def test_the_training_page_shows_unfinished_trainings_and_runs_as_such(
    made: Callable[[str], tuple[Path, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, runs = made(ORDINARY)
    monkeypatch.setattr(paths, "RUNS", runs)
    shipped = paths.DATA / "adapters"
    record = json.loads((shipped / "smollm2-135m-tuned/training.json").read_bytes())
    record |= {"losses": [], "dev": [], "chosen": None, "hours": 0.0}
    (tmp_path / "training.json").write_text(json.dumps(record))
    partial = tmp_path / "partial"
    shutil.copytree(shipped / "whole-dialogues", partial)
    # A run over a sample of the dialogues.
    head, *answers = map(json.loads, (partial / "dev.jsonl").read_text().splitlines())
    head["record"]["dialogues"] = ["d0000", "d0001"]
    rows = [head, *(row for row in answers if row["dialogue"] in head["record"]["dialogues"])]
    (partial / "dev.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    # Another tokenizer begins `none` with the token `n`.
    journal = paths.SHIPPED_RUNS / "surrogate-dev" / "smollm2-135m-tuned-constrained.jsonl"
    split = tmp_path / "split.jsonl"
    split.write_text(journal.read_text().replace('[{"none": ', '[{"n": '))
    values = {"corpus": str(corpus), "draws": 20, "adapter": str(tmp_path), "dev_model": str(split)}
    shown = show("training", values | {"others": [str(partial)]})
    assert "has not finished" in shown[-1].message
    tables = {item.caption.split()[0]: item for item in shown if isinstance(item, Table)}
    assert [row[1].text for row in tables["Trainings"].rows] == ["2,000"]
    usual = show("training", {"corpus": str(corpus), "draws": 20})
    [odds] = [i for i in usual if isinstance(i, Table) and i.caption.startswith("Flagged")]
    assert tables["Flagged"].frame.equals(odds.frame)


@pytest.mark.parametrize("name", ["surrogate", ORDINARY])
def test_dialogues_without_labels_are_counted_only_with_plans(
    name: str, made: Callable[[str], tuple[Path, Path]]
) -> None:
    corpus = load_corpus(name if name == "surrogate" else made(name)[0])
    shown = show("statistics", {"corpus": str(name if name == "surrogate" else corpus.path)})
    [plans] = [i for i in shown if isinstance(i, Table) and i.caption.startswith("Scenarios and")]
    quiet = sum(dialogue.mask == 0 for dialogue in corpus)
    told = f"The counts include {quiet} dialogues without labels" in " ".join(plans.notes)
    assert told is (name == "surrogate")


def visible_text(item: Any) -> str:
    """Returns the markup of a result, or the texts and drawing of a picture."""
    if isinstance(item, Picture):
        return f"{item.alt} {item.caption} {item.svg.decode()}"
    return str(item._repr_html_())
