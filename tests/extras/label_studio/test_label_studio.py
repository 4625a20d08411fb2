"""Against a real Label Studio, through its API and in a browser. Slow: `make test-labelstudio`.

With ``CRADLE_PICTURES`` set to a folder, the pictures of the interface are written there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

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
from cradle_lib.corpus import Corpus, Dialogue, Turn, load_corpus
from cradle_lib.labels import BITS, mask_of
from tools.annotations.build import region

from ...annotation.finished_study import Run
from ...book.site import FLAGS, chromium
from . import label_studio
from .page import SEEN, printed, votes

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


TURNS = ("How has the week been?", "Loud.", "very", "My partner keeps my money.")


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
    if label_studio.executable() is None:
        pytest.fail("Label Studio is not installed: run `make test-labelstudio`")
    with label_studio.serve(tmp_path_factory.mktemp("server")) as served:
        yield served


def study_of(corpus: Corpus, *people: str) -> Study:
    """A study of one round in which only these people have to label, and all of it."""
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


def test_what_two_people_submit_is_what_the_importer_reads(
    server: label_studio.Server, corpus: Corpus, tmp_path: Path
) -> None:
    study = study_of(corpus, "A", "B")
    every = [1 << index for index in range(16)]
    submitted = {
        ("A", "d0000"): (0, BITS["alert_past"], 0, 0, 0, every[5] | every[9], 0, 0, every[15]),
        ("B", "d0000"): (every[2], 0, 0, every[0], 0, 0, every[6], 0, 0),
        ("A", "d0001"): (0, 0, 0),
        ("B", "d0001"): (sum(every), 0, 1),
    }
    projects = {}
    for tasks in write_tasks(study, corpus, tmp_path, study.assignments):
        projects[tasks.stem], numbers = server.project(tasks.stem, labelling_config(), tasks)
        for (name, dialogue), masks in submitted.items():
            if tasks.stem.endswith(name):
                texts = corpus.dialogues[int(dialogue[1:])].turns
                pairs = zip(texts, masks, strict=True)
                result = [region(t.turn_id, mask, t.text) for t, mask in pairs if mask]
                path = f"/api/tasks/{numbers[dialogue]}/annotations/"
                server.call("POST", path, {"result": result})
    for kind in ("JSON", "JSON_MIN"):
        exports = [
            server.export(project, kind, tmp_path / f"{name}-{kind}.json")
            for name, project in projects.items()
        ]
        assert given(read_exports(exports, study, corpus)) == submitted


def test_what_the_server_exports_beside_labels_is_ignored(
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

    first = [region(1, 1, TEXTS[1][1]), region(3, 2, TEXTS[3][1])]
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

    masks = tuple({1: 1, 3: 2}.get(number, 0) for number in range(len(TEXTS)))
    for kind, counted in (("JSON", [3, 2]), ("JSON_MIN", [0, 0])):
        export = server.export(project, kind, tmp_path / f"{kind}.json")
        ignored: Counter[str] = Counter()
        found = given(read_exports([export], study, corpus, ignored=ignored))
        assert found == {("A", "d0000"): masks, ("A", "d0001"): (0, 0, 0)}
        assert [ignored["results without a label"], ignored["skipped annotations"]] == counted


def picture(page: Page, name: str) -> None:
    """Writes a picture of the labels and the dialogue, without the panels beside them."""
    folder = os.environ.get("CRADLE_PICTURES")
    if folder:
        page.mouse.move(700, 990)
        clip = {"x": 240, "y": 90, "width": 700, "height": 860}
        page.screenshot(path=Path(folder) / f"{name}.png", clip=clip)  # type: ignore[arg-type]


def turn(page: Page, number: int) -> None:
    """Gives the chosen labels to a whole turn."""
    page.locator(f'[data-testid="phrase:{number}"] button:not([disabled])').click()


def test_labels_ticked_in_the_browser_arrive(
    server: label_studio.Server, browser: Browser, corpus: Corpus, tmp_path: Path
) -> None:
    study = study_of(corpus, "A")
    (tasks,) = write_tasks(study, corpus, tmp_path, study.assignments)
    project, numbers = server.project("One person", labelling_config(), tasks)
    page = server.login(browser, server.owner)
    page.goto(f"{server.address}/projects/{project}/data?task={numbers['d0000']}")
    page.wait_for_selector('[data-testid="phrase:8"]', timeout=120_000)
    for speaker, text in TEXTS:
        shown = page.get_by_text(text.removeprefix("- "), exact=False).first
        assert shown.count() == 1, (speaker, text)

    # By key, several at once; by mouse; and on a turn that is labelled already.
    page.keyboard.press(HOTKEYS["alert_ongoing"])
    turn(page, 3)
    page.keyboard.press("Escape")
    page.keyboard.press(HOTKEYS["confirm_DV_ongoing"])
    page.get_by_text(title("confirm_DV_past"), exact=True).first.click()
    turn(page, 5)
    page.keyboard.press("Escape")
    picture(page, "annotation-task")
    for panel, text in (("Rules", RULES[2]), ("Definitions", DEFINITIONS["SHA"])):
        page.get_by_text(panel, exact=True).first.click()
        page.get_by_text(text).first.wait_for()
    picture(page, "annotation-definitions")
    with page.expect_response(lambda r: "/annotations" in r.url and r.request.method == "POST"):
        page.get_by_role("button", name="Submit").click()

    # A dialogue without any label is submitted as it is.
    page.goto(f"{server.address}/projects/{project}/data?task={numbers['d0001']}")
    page.wait_for_selector('[data-testid="phrase:2"]', timeout=120_000)
    with page.expect_response(lambda r: "/annotations" in r.url and r.request.method == "POST"):
        page.get_by_role("button", name="Submit").click()
    page.context.close()

    expected = [0] * len(TEXTS)
    expected[3] = BITS["alert_ongoing"]
    expected[5] = mask_of(["confirm_DV_ongoing", "confirm_DV_past"])
    for kind in ("JSON", "JSON_MIN"):
        export = server.export(project, kind, tmp_path / f"{kind}.json")
        found = given(read_exports([export], study, corpus))
        assert found == {("A", "d0000"): tuple(expected), ("A", "d0001"): (0, 0, 0)}


def label(server: label_studio.Server, browser: Browser, folder: Path) -> list[str]:
    """Makes a project of every new file of tasks, labels it, and exports it under its name."""
    (folder / "exports").mkdir(exist_ok=True)
    config = (folder / "study" / "interface.xml").read_text(encoding="utf-8")
    done = []
    for path in sorted((folder / "study" / "tasks").glob("*.json")):
        target = folder / "exports" / path.name
        if target.exists():
            continue
        by_hand = path.stem == "round1-A"
        if by_hand:
            page = server.login(browser, server.owner)
            asked: set[str] = set()
            page.context.on(
                "request", lambda request, to=asked: to.add(urlsplit(request.url).netloc)
            )  # type: ignore[misc]
            project = server.project_by_hand(page, path.stem, config, path)
            numbers = server.tasks(project)
        else:
            project, numbers = server.project(path.stem, config, path)
        for dialogue, number in numbers.items():
            masks = votes(path.stem, dialogue)
            result = [region(t, mask, TURNS[t]) for t, mask in masks.items()]
            server.call("POST", f"/api/tasks/{number}/annotations/", {"result": result})
        if by_hand:
            server.export_by_hand(page, project, target)
            page.context.close()
            # What is labelled is shown to nobody else.
            assert asked == {urlsplit(server.address).netloc}
        else:
            server.export(project, "JSON_MIN" if path.stem.endswith("B") else "JSON", target)
        done.append(path.stem)
    return done


def test_the_page_leads_from_a_folder_to_gold(
    server: label_studio.Server, browser: Browser, run: Run, tmp_path: Path
) -> None:
    talks = tmp_path / "my-dialogues"
    talks.mkdir()
    for number in range(6):
        text = f"Listener: {TURNS[0]}\nUser: {TURNS[1]}\n{TURNS[2]}\nUser: {TURNS[3]}\n"
        (talks / f"{number}.txt").write_text(text, encoding="utf-8")

    def follow(*commands: str) -> str:
        for command in commands:
            done = run(command, tmp_path)
            assert done.code == 0, f"{command}\n{done.out}{done.err}"
        return done.out

    collect, export, read_first, agreement, read, by_user_turns, after, adjudicate, *_ = printed()
    follow(collect, export)
    assert len(label(server, browser, tmp_path)) == 8
    follow(read_first, agreement, read, by_user_turns, after)
    assert {name.split("-")[0] for name in label(server, browser, tmp_path)} == {"adjudicator"}
    follow(read, after)
    assert label(server, browser, tmp_path) == ["senior-S"]
    assert "Nothing is left" in follow(read, after)
    follow(adjudicate)
    gold = load_corpus(tmp_path / "gold.parquet")
    assert [[turn.mask for turn in dialogue.turns] for dialogue in gold] == [
        [0, SEEN[1], 0, SEEN[3]]
    ] * 6
