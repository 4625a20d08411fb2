"""Tests with a real Label Studio, its API and a browser. Slow: `make test-labelstudio`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from cradle_extras.label_studio.exports import read_exports
from cradle_extras.label_studio.interface import (
    DEFINITIONS,
    HOTKEYS,
    RULES,
    labelling_config,
    title,
)
from cradle_extras.label_studio.study import Study, plan_study
from cradle_extras.label_studio.tasks import write_tasks
from cradle_lib.annotation.table import Annotations
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.labels import BITS, mask_of
from tools.annotations.build import region

from ...book.site import FLAGS, chromium
from . import label_studio

pytestmark = pytest.mark.labelstudio

TEXTS = (
    ("Listener", "Good to see you. How has the week been?"),
    ("User", "Loud. Exams, and my flatmate moved out."),
    ("Listener", "That is a lot at once."),
    ("User", "The exams went well. I'd just rather not go home yet, if that makes sense."),
    ("Listener", "It does. Take your time."),
    ("User", "My partner keeps my money and reads my messages, and I need leave to see friends."),
    ("User", "- and my keys"),
    ("Listener", "Thank you for telling me."),
    ("User", "Tonight my sister picks me up \N{AUTOMOBILE}, so that is something."),
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    turns = tuple(
        Turn(row, row, speaker, text, 0, continues=text.startswith("-"))  # type: ignore[arg-type]
        for row, (speaker, text) in enumerate(TEXTS)
    )
    shorter = tuple(
        Turn(row, row, "User", f"Nothing new, day {row}. <b>Fine</b> & well.", 0)
        for row in range(3)
    )
    return Corpus("pictures", (Dialogue(0, turns), Dialogue(1, shorter)))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[label_studio.Server]:
    if not label_studio.PROGRAM.is_file():
        pytest.fail("Label Studio is not installed: run `make test-labelstudio`")
    with label_studio.serve(tmp_path_factory.mktemp("server")) as served:
        yield served


def study_of(corpus: Corpus, *people: str) -> Study:
    """Makes a study of one round in which each of these people labels all dialogues."""
    study = plan_study(corpus, {"1": ("A", "B"), "2": ("C", "D")}, rounds=1, senior="S")
    item = study.assignments[0]
    return study.model_copy(
        update={
            "assignments": tuple(
                item.model_copy(update={"dialogue": dialogue.id, "team": "1", "annotator": name})
                for dialogue in corpus
                for name in people
            )
        }
    )


def given(annotations: Annotations) -> dict[tuple[str, str], tuple[int, ...]]:
    return {(entry.annotator, entry.dialogue): entry.masks for entry in annotations.entries}


def test_results_of_other_controls_are_ignored(
    server: label_studio.Server, corpus: Corpus, tmp_path: Path
) -> None:
    study = study_of(corpus, "A")
    (tasks,) = write_tasks(study, corpus, tmp_path, study.assignments)
    beside = (
        '<TextArea name="why" toName="dialogue"/><Rating name="stars" toName="dialogue"/></View>'
    )
    config = beside.join(labelling_config().rsplit("</View>", 1))
    project, numbers = server.project("Relations and skips", config, tasks)
    place = {name: f"/api/tasks/{number}" for name, number in numbers.items()}

    every = (1 << len(BITS)) - 1
    first = [region(1, 1, TEXTS[1][1]), region(3, every, TEXTS[3][1])]
    extra = [
        {"from_id": "turn1", "to_id": "turn3", "type": "relation", "direction": "right"},
        {"from_name": "why", "to_name": "dialogue", "type": "textarea", "value": {"text": ["?"]}},
        {"from_name": "stars", "to_name": "dialogue", "type": "rating", "value": {"rating": 3}},
    ]
    skip = {"result": [], "was_cancelled": True}
    other = {"result": [region(0, 4, corpus.dialogues[1].turns[0].text)]}
    server.call("POST", f"{place['d0000']}/annotations/", skip)
    server.call("POST", f"{place['d0000']}/annotations/", {"result": first + extra})
    server.call("POST", f"{place['d0001']}/annotations/", {"result": []})
    server.call("POST", f"{place['d0001']}/annotations/", skip)
    server.call("POST", f"{place['d0001']}/drafts", {**other, "lead_time": 1})
    server.call("POST", "/api/predictions/", {"task": numbers["d0001"], **other})

    masks = tuple({1: 1, 3: every}.get(number, 0) for number in range(len(TEXTS)))
    export = server.export(project, tmp_path / "export.json")
    ignored: Counter[str] = Counter()
    found = given(read_exports([export], study, corpus, ignored=ignored))
    assert found == {("A", "d0000"): masks, ("A", "d0001"): (0, 0, 0)}
    assert +ignored == {
        "results without a label": 3,
        "skipped annotations": 2,
        "drafts newer than the submitted annotation": 1,
    }


def turn(page: Page, number: int) -> None:
    """Gives the selected labels to a whole turn."""
    page.locator(f'[data-testid="phrase:{number}"] button:not([disabled])').click()


def test_labels_chosen_in_the_browser_are_exported(
    server: label_studio.Server, browser: Browser, corpus: Corpus, tmp_path: Path
) -> None:
    study = study_of(corpus, "A")
    (tasks,) = write_tasks(study, corpus, tmp_path, study.assignments)
    project, numbers = server.project("One person", labelling_config(), tasks)
    page = server.login(browser)
    page.goto(f"{server.address}/projects/{project}/data?task={numbers['d0000']}")
    page.wait_for_selector('[data-testid="phrase:8"]', timeout=120_000)
    for speaker, text in TEXTS:
        shown = page.get_by_text(text.removeprefix("- "), exact=False).first
        assert shown.count() == 1, (speaker, text)

    # With the keyboard; with the mouse; several labels on one turn.
    page.keyboard.press(HOTKEYS["alert_ongoing"])
    turn(page, 3)
    page.keyboard.press("Escape")
    page.keyboard.press(HOTKEYS["confirm_DV_ongoing"])
    page.get_by_text(title("confirm_DV_past"), exact=True).first.click()
    turn(page, 5)
    page.keyboard.press("Escape")
    for panel, text in (("Rules", RULES[2]), ("Definitions", DEFINITIONS["SHA"])):
        page.get_by_text(panel, exact=True).first.click()
        page.get_by_text(text).first.wait_for()
    with page.expect_response(lambda r: "/annotations" in r.url and r.request.method == "POST"):
        page.get_by_role("button", name="Submit").click()

    # A dialogue without labels is submitted unchanged.
    page.goto(f"{server.address}/projects/{project}/data?task={numbers['d0001']}")
    page.wait_for_selector('[data-testid="phrase:2"]', timeout=120_000)
    with page.expect_response(lambda r: "/annotations" in r.url and r.request.method == "POST"):
        page.get_by_role("button", name="Submit").click()
    page.context.close()

    expected = [0] * len(TEXTS)
    expected[3] = BITS["alert_ongoing"]
    expected[5] = mask_of(["confirm_DV_ongoing", "confirm_DV_past"])
    export = server.export(project, tmp_path / "export.json")
    found = given(read_exports([export], study, corpus))
    assert found == {("A", "d0000"): tuple(expected), ("A", "d0001"): (0, 0, 0)}
