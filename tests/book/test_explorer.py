"""The explorer in a real browser, opened from disk: counts, links, keys, and hidden text.

The oracles are frames of the library for counts, and sessions for histories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page

from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection import Predictions
from cradle_lib.detection.protocol.parsing import OUTCOMES
from cradle_lib.detection.protocol.session import Answer, Session
from cradle_lib.display.explorer.explorer import explore
from cradle_lib.display.explorer.links import with_links
from cradle_lib.labels import BITS, format_mask
from cradle_lib.prompts import load_template
from cradle_lib.scoring.analyses.confusion import confusion_frame
from cradle_lib.scoring.analyses.error_counts import error_counts
from cradle_lib.scoring.analyses.explorer_data import explorer_data
from cradle_lib.scoring.analyses.stage_orders import stage_orders
from cradle_lib.scoring.label_pairs import KINDS, label_pairs

from ..detection.dialogues import make_corpus
from ..forty_dialogues import HOSTILE, corpus, make_run, runs
from ..scoring.made_runs import make_predictions
from .explorer_site import write_site

__all__ = ["corpus", "make_run", "runs"]
SECRET = "alert('x')"


@pytest.fixture(scope="module")
def systems(corpus: Corpus, runs: list[Predictions]) -> list[Predictions]:
    """Two complete runs, one of them with every outcome, and a sample."""
    always, half, part = runs
    outcomes = half.outcomes.copy()
    outcomes[1::10], outcomes[2::10] = OUTCOMES.index("refused"), OUTCOMES.index("failed")
    masks = np.where(outcomes == 0, half.masks, 0).astype(np.uint16)
    # Turns with several gold and predicted labels.
    masks[3::10] |= np.uint16(BITS["alert_ongoing"] | BITS["confirm_SH_past"])
    answers = tuple(f"{format_mask(int(mask))} {HOSTILE}" for mask in masks)
    return [always, replace(half, masks=masks, outcomes=outcomes, answers=answers), part]


@pytest.fixture(scope="module")
def address(
    tmp_path_factory: pytest.TempPathFactory, corpus: Corpus, systems: list[Predictions]
) -> str:
    return write_site(tmp_path_factory.mktemp("explorer"), explore(explorer_data(corpus, systems)))


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """A function that opens the explorer; afterwards, pages must have no messages or requests."""
    pages: list[Page] = []
    messages: list[str] = []
    requests: list[str] = []

    def visit(hash_: str = "", site: str = address) -> Page:
        page = browser.new_page(reduced_motion="reduce")
        pages.append(page)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("dialog", lambda dialog: messages.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(site + hash_)
        page.locator("#cradle-explorer[data-ready]").wait_for(state="attached")
        page.evaluate("document.querySelector('.narrow').open = true")
        return page

    yield visit
    for page in pages:
        page.close()
    assert messages == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def counts(page: Page, hashes: list[str]) -> list[dict[str, int]]:
    found: list[dict[str, int]] = page.evaluate(
        "all => all.map(hash => cradleExplorer.count(hash))", hashes
    )
    assert all(each["unknown"] == [] for each in found)
    return found


def hash_of(link: str) -> str:
    return link.removeprefix("explore.html")


def test_every_count_of_a_frame_equals_the_count_at_its_link(
    open_page: Callable[..., Page], systems: list[Predictions]
) -> None:
    page = open_page()

    def behind(frame: pd.DataFrame) -> pd.DataFrame:
        """Returns the explorer's counts at the link of each row."""
        return pd.DataFrame(counts(page, with_links(frame)["link"].map(hash_of).tolist()))

    for run in systems:
        for pairing in ("one-to-one", "all"):
            cells = confusion_frame(run, pairing=pairing)
            assert behind(cells)["turns"].tolist() == cells["count"].tolist()
            assert behind(cells)["pairs"].tolist() == cells["count"].tolist()

        pairs = label_pairs(run)
        groups = pairs.dropna(subset="category").groupby(["system", "category"], observed=False)
        kinds = groups.size().rename("count").reset_index()
        assert behind(kinds)["pairs"].tolist() == kinds["count"].tolist()
        turns = groups.apply(lambda own: len(own.drop_duplicates(["dialogue", "turn"])))
        assert behind(kinds)["turns"].tolist() == turns.tolist()
        for kind in set(KINDS.values()):
            own = pairs["category"].isin([c for c, k in KINDS.items() if k == kind])
            [found] = counts(page, [f"#m={quote(run.record.name)}&f=category:{kind}"])
            assert found["pairs"] == own.sum()

        table = error_counts(run)
        quiet = (run.corpus.gold == 0).sum()
        for row, each in zip(table.itertuples(), behind(table).itertuples(), strict=True):
            share = row.unit == "share"
            assert (each.turns / quiet if share else each.pairs) == row.value, row.quantity

        orders = stage_orders(run)
        shown = orders.rename(columns={"gold": "gold_order", "predicted": "predicted_order"})
        assert behind(shown)["dialogues"].tolist() == orders["value"].tolist()
        assert orders["value"].astype(bool).sum() > 1


def test_numbers_of_filter_options_equal_filtered_counts(open_page: Callable[..., Page]) -> None:
    page = open_page("#m=keyword,always-none&f=scenario:S1")
    checked = 0
    for name in ("gold", "category", "outcome", "both", "timing"):
        options = page.locator(f"[name={name}] option")
        for value, label in options.evaluate_all("all => all.map(o => [o.value, o.label])"):
            if "(" not in label:
                continue
            page.select_option(f"[name={name}]", value)
            shown = page.locator(".count").inner_text().replace(",", "")
            number, unit = label.rsplit("(", 1)[1].rstrip(")").replace(",", "").split()
            assert number == shown.split()[0], (name, label, shown)
            by_pair = "pair" in shown or "error" in shown
            assert unit.startswith("pair" if by_pair else "turn"), (name, label, shown)
            checked += 1
        page.select_option(f"[name={name}]", "")
    assert checked > 30


def test_a_link_restores_the_view(open_page: Callable[..., Page]) -> None:
    hash_ = (
        "#d=d0009&t=4&m=keyword,smollm2-135m&f=gold:none;predicted:any;timing:early,late&s=-turns"
    )
    page = open_page(hash_)
    assert page.evaluate("location.hash") == hash_
    assert page.locator(".dialogue h2").inner_text() == "d0009"
    names = page.locator(".label-table tbody th").all_inner_texts()
    assert names == ["Gold", "Model <keyword>", "Model <smollm2-135m>"]
    assert page.locator(".label-table th.chosen").inner_text().split() == ["Turn", "4"]
    page.keyboard.press("Escape")
    assert page.locator("[name=timing]").input_value() == "early,late"
    page.go_back()
    page.locator(".dialogue h2", has_text="d0009").wait_for()
    assert page.evaluate("location.hash") == hash_


def test_unknown_values_in_a_link_are_reported(open_page: Callable[..., Page]) -> None:
    page = open_page("#d=d9999&m=nobody&f=colour:red")
    problem = page.locator(".problem").inner_text()
    assert all(name in problem for name in ("d9999", "nobody", "colour"))
    assert page.locator(".dialogues").is_visible()


def test_the_explorer_opens_with_the_best_system_and_a_legend(
    open_page: Callable[..., Page], systems: list[Predictions]
) -> None:
    page = open_page()
    # The other complete run predicts nothing.
    best = page.locator("[name=a] option:checked")
    assert best.inner_text() == systems[1].record.name
    assert page.locator("[name=b]").input_value() == ""
    legend = page.locator(".legend")
    assert legend.inner_text().startswith("First line gold, then each system")
    assert legend.bounding_box()["height"] < 32  # type: ignore[index]
    assert page.locator(".who").is_hidden()
    # A skip link leads to the first control.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the explorer"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.name") == "a"


def test_without_gold_labels_predictions_have_no_verdicts(
    open_page: Callable[..., Page], corpus: Corpus, systems: list[Predictions], tmp_path: Path
) -> None:
    unlabelled = replace(corpus, dialogues=tuple(map(without_gold, corpus)))
    run = replace(systems[1], corpus=unlabelled)
    # A turn with two predictions.
    turn = int(np.flatnonzero((run.masks != 0) & (run.masks & (run.masks - 1) != 0))[0])
    dialogue, place = divmod(turn, 4)
    site = write_site(tmp_path / "bare", explore(explorer_data(unlabelled, [systems[0], run])))
    page = open_page("", site)
    assert page.locator(".legend").inner_text().startswith("One line for each system")
    assert page.locator(".line.gold").count() == 0
    hidden = {"gold", "category", "gold_order", "systems_wrong"}
    for control in page.locator(".narrow label:not(.about) select").all():
        assert control.is_hidden() == (control.get_attribute("name") in hidden)
    predicted = (run.masks != 0) | (run.outcomes != 0)
    [column] = page.locator("th.disagreements").all()
    assert column.inner_text() == "Predicted"
    first = page.locator("td.disagreements").first
    assert int(first.inner_text()) == predicted[:4].sum()
    page = open_page(f"#d=d{dialogue:04}&m=keyword&t={2 * place + 2}", site)
    verdicts = page.locator(".verdicts li").all_inner_texts()
    assert [verdict.strip() for verdict in verdicts] == format_mask(int(run.masks[turn])).split(
        "; "
    )
    assert page.locator(".of-gold:visible").count() == 0
    assert page.locator(".label-table tbody tr").count() == 1
    assert page.locator("svg.mark path.ring").count() == 0
    page.keyboard.press("?")
    assert page.locator("dialog.help").is_visible()
    assert "missed" not in page.locator("dialog.help").inner_text()


def test_a_dialogue_without_gold_labels_has_no_verdicts(
    open_page: Callable[..., Page], corpus: Corpus, systems: list[Predictions], tmp_path: Path
) -> None:
    first, *others = corpus
    partly = replace(corpus, dialogues=(without_gold(first), *others))
    run = replace(systems[1], corpus=partly)
    site = write_site(tmp_path / "partly", explore(explorer_data(partly, [run])))
    page = open_page("#d=d0000", site)
    assert page.locator(".turn .of-gold").count() == 0
    assert page.locator(".label-table tbody tr").count() == 1
    assert page.locator(".dialogue svg.mark path.ring").count() == 0
    page = open_page(f"#d={others[0].id}", site)
    assert page.locator(".label-table tbody tr").count() == 2
    page = open_page("#f=category:any", site)
    errors = label_pairs(run)["category"].notna().sum()
    assert page.locator(".count").inner_text().startswith(f"{errors:,} errors")


def without_gold(dialogue: Dialogue) -> Dialogue:
    return replace(dialogue.relabelled([0] * len(dialogue.turns)), labelled=False)


def test_annotators_are_shown_on_the_same_page(
    open_page: Callable[..., Page], corpus: Corpus, systems: list[Predictions], tmp_path: Path
) -> None:
    person = systems[1].record.model_copy(update={"name": "Annotator B", "group": "people"})
    people = explorer_data(corpus, [replace(systems[1], record=person)])
    site = write_site(tmp_path / "both", explore(explorer_data(corpus, systems), people=people))
    page = open_page("", site)
    page.select_option("[name=who]", "annotators")
    page.locator(
        "#cradle-explorer[data-ready] .legend", has_text="First annotator".lower()
    ).wait_for()
    assert page.evaluate("location.hash") == "#v=annotators"
    assert page.locator("[name=a] option:checked").inner_text() == "Annotator B"
    assert page.locator(".filters .of-who").all_inner_texts() == ["Annotator", "Annotator"]
    frame = with_links(confusion_frame(systems[1]).assign(system="Annotator B"), people=True)
    found = counts(page, frame["link"].map(hash_of).tolist())
    assert [each["turns"] for each in found] == frame["count"].tolist()
    page.click(".dialogues tbody a >> nth=0")
    page.locator(".dialogue h2", has_text="d0000").wait_for()
    assert page.evaluate("location.hash").startswith("#v=annotators&d=d0000")
    page.evaluate("location.hash = '#m=keyword'")
    page.locator("#cradle-explorer[data-ready] .legend", has_text="each system").wait_for()


def test_text_is_hidden_until_requested_and_escaped(open_page: Callable[..., Page]) -> None:
    page = open_page("#d=d0003&t=4&m=keyword")
    assert SECRET not in page.content()
    assert page.locator("script[src*='text-']").count() == 0
    assert page.locator(".gate a[href='tel:988']").is_visible()
    page.click(".open-text")
    page.locator(".transcript p").first.wait_for()
    assert "3.3" in page.locator(".transcript").inner_text()
    assert HOSTILE in page.locator(".transcript").inner_text()
    assert HOSTILE in page.locator(".of-system pre").first.inner_text()
    assert page.locator("#cradle-explorer script:not([src])").count() == 0
    page.keyboard.press("f")
    page.fill("[name=text]", "<script>")
    page.keyboard.press("Enter")
    page.locator("mark").first.wait_for()
    assert page.locator("mark").first.inner_text() == "<script>"
    page.keyboard.press("Escape")
    page.keyboard.press("h")
    page.locator(".gate").wait_for()
    assert SECRET not in page.locator("main").inner_html()
    page.click(".open-text")
    page.locator(".transcript p").first.wait_for()
    page.reload()
    page.locator(".gate").wait_for()
    assert SECRET not in page.locator("main").inner_html()


SEARCHED = (
    *("I don\u2019t sleep.", "caf\u00e9 closed", "cafe\u0301 closed", "Cafe open"),
    *("at 10\u00a0pm", "\u0130stanbul trip", "stra\u00dfe", "soft\u00adhyphen", "new\u2028line"),
    *('\u00abwell\u00bb "well"', "so\u2014so", "\ufb01ne", "\u039f\u0394\u039f\u03a3"),
)
# Search text: what is marked in which of the texts.
MARKED = {
    "DON\u2018T sleep": {0: "don\u2019t sleep"},
    "cafe\u0301": {1: "caf\u00e9", 2: "cafe\u0301", 3: "Cafe"},
    "10 pm": {4: "10\u00a0pm"},
    "istanbul": {5: "\u0130stanbul"},
    "strasse": {6: "stra\u00dfe"},
    "softhy": {7: "soft\u00adhy"},
    "new line": {8: "new\u2028line"},
    '"well"': {9: '\u00abwell\u00bb"well"'},
    "so-so": {10: "so\u2014so"},
    "fine": {11: "\ufb01ne"},
    "\u03bf\u03b4\u03bf\u03c2": {12: "\u039f\u0394\u039f\u03a3"},
    "\u00ad": {},
}


def test_the_search_ignores_spelling_that_readers_do_not_see(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    texts = make_corpus([[("User", text, "none")] for text in SEARCHED])
    run = make_predictions(texts, np.zeros(len(SEARCHED), dtype=np.uint16))
    site = write_site(tmp_path, explore(explorer_data(replace(texts, synthetic=True), [run])))
    page = open_page("#d=d0000&t=0", site)
    page.click(".open-text")
    for wanted, expected in MARKED.items():
        page.evaluate(f"location.hash = '#d=d0000&f=text:{quote(wanted, safe='')}'")
        size = len(expected or SEARCHED)
        page.locator(".count", has_text=f"{size} of {len(SEARCHED)} dialogues").wait_for()
        found = {}
        for index in expected:
            address = f"#d=d{index:04}&f=text:{quote(wanted, safe='')}"
            page.evaluate(f"location.hash = {address!r}")
            page.locator(".dialogue h2", has_text=f"d{index:04}").wait_for()
            found[index] = "".join(page.locator("mark").all_text_contents())
        assert found == expected, wanted


def test_every_function_has_a_key(open_page: Callable[..., Page]) -> None:
    page = open_page("#m=keyword,always-none")
    press = page.keyboard.press

    def where() -> list[str]:
        text: str = page.evaluate("location.hash")
        return [part for part in text.lstrip("#").split("&") if part[0] in "dt"]

    press("j")
    page.locator(".dialogue h2", has_text="d0000").wait_for()
    press("j")
    page.locator(".dialogue h2", has_text="d0001").wait_for()
    press("k")
    page.locator(".dialogue h2", has_text="d0000").wait_for()
    for _ in range(4):
        press("ArrowLeft")
    assert where() == ["d=d0000", "t=2"]
    press("ArrowRight")
    assert where() == ["d=d0000", "t=4"]
    assert page.locator(".label-table th.chosen button").evaluate(
        "b => b === document.activeElement"
    )
    seen = [where()]
    for _ in range(3):
        press("n")
        seen.append(where())
    press("p")
    assert where() == seen[-2]
    press("Escape")
    assert where() == []
    press("s")
    assert page.locator("[name=a]").evaluate("e => e === document.activeElement")
    press("Escape")
    press("f")
    assert page.locator("[name=gold]").evaluate("e => e === document.activeElement")
    page.keyboard.type("No gold")
    assert page.locator("[name=gold]").input_value() == "none"
    press("Escape")
    press("c")
    assert page.locator("[name=gold]").input_value() == ""
    press("?")
    assert page.locator("dialog.help").is_visible()
    page.locator("dialog.help input").focus()
    press("Space")
    press("Escape")
    press("j")
    assert where() == []


def summary(corpus: Corpus, run: Predictions, index: int, row: int) -> str:
    """What the player says about a turn, from the masks of the corpus and of the run."""
    start = int(np.searchsorted(corpus.dialogue_of, index))
    turns = corpus.dialogues[index].user_turns
    gold = [turn.mask for turn in turns]
    said = [int(mask) for mask in run.masks[start : start + len(turns)]]
    outcomes = [OUTCOMES[code] for code in run.outcomes[start : start + len(turns)]]
    here = [turn.turn_id for turn in turns].index(row)
    labels = [label for label, bit in BITS.items() if gold[here] & bit]
    stage = "explicit here" if any("confirm" in label for label in labels) else "implied here"
    same = [place for place in range(len(turns)) if said[place] & gold[here]]
    number = {1: "one turn", 2: "two turns", 3: "three turns"}
    if outcomes[here] != "ok":
        verdict = outcomes[here]
    elif not labels:
        verdict = "false alarm" if said[here] else "silent"
    elif here in same:
        verdict = "correct" if said[here] == gold[here] else "partly correct"
    elif any(place > here for place in same):
        verdict = number[min(place for place in same if place > here) - here] + " late"
    elif same:
        verdict = number[here - max(same)] + " early"
    else:
        verdict = "another label" if said[here] else "silent"
    alarms = sum(bool(said[place]) and not gold[place] for place in range(here))
    before = {0: "", 1: ", one false alarm before"}.get(alarms, f", {alarms} false alarms before")
    before = before.replace("2 false", "two false").replace("3 false", "three false")
    before = before if labels else ""
    stage = stage if labels else "no label here"
    return f"Turn {row + 1}, {stage}. {run.record.name}: {verdict}{before}."


def test_the_player_says_how_a_system_answers_each_turn(
    open_page: Callable[..., Page], corpus: Corpus, systems: list[Predictions]
) -> None:
    page = open_page()
    for number, run in enumerate(systems[:2]):
        for index, dialogue in enumerate(corpus.dialogues):
            rows = [turn.turn_id for turn in dialogue.user_turns]
            seen = page.evaluate(
                "([dialogue, rows, system]) => rows.map("
                "row => cradleExplorer.turnSummary({ dialogue, row, systems: [system] }))",
                [index, rows, number],
            )
            assert seen == [summary(corpus, run, index, row) for row in rows], index


def test_a_dialogue_is_played_turn_by_turn(open_page: Callable[..., Page]) -> None:
    page = open_page("#d=d0003&p=1&m=keyword")
    page.clock.install()
    turns = page.locator(".transcript li")
    toggle = page.locator(".player .toggle")
    assert turns.count() == 1
    page.keyboard.press("ArrowRight")
    assert turns.count() == 2
    assert page.locator(".chips, .user small").count() == 1
    # A system's later turns have not appeared either.
    assert page.locator(".label-table tbody td:visible .marks:visible").count() == 2
    assert "t=2&p=1" in page.url
    page.keyboard.press("t")
    assert toggle.inner_text() == "Pause"
    page.clock.run_for(20_000)
    page.locator(".player .toggle", has_text="Play").wait_for()
    assert turns.count() == 8
    page.keyboard.press("t")
    assert turns.count() == 1
    page.keyboard.press("t")
    page.clock.run_for(20_000)
    assert (turns.count(), toggle.inner_text()) == (1, "Play")
    assert toggle.evaluate("e => e === document.activeElement")
    page.get_by_role("button", name="Whole dialogue").click()
    assert turns.count() == 8
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator(".label-table tbody th:visible").all_inner_texts()[0] == "Gold"


def test_a_single_dialogue_is_played_on_another_page_and_takes_nothing_from_it(
    open_page: Callable[..., Page], corpus: Corpus, systems: list[Predictions], tmp_path: Path
) -> None:
    one = corpus.subset([3], "one")
    shown = explore(explorer_data(one, [run.subset(one) for run in systems[:2]]))
    page = open_page("#part", write_site(tmp_path, shown))
    turns = page.locator(".transcript li")
    assert turns.count() == 1
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("scrollY") == 0
    # Keys of the explorer do nothing outside it.
    page.keyboard.press("ArrowRight")
    assert turns.count() == 1
    page.get_by_role("button", name="Next turn").click()
    page.keyboard.press("ArrowRight")
    assert turns.count() == 3
    assert page.locator(".label-table tbody tr").count() == 3
    assert page.locator("[name=a], .bar, .list").filter(visible=True).count() == 0
    assert page.url.endswith("#part")
    page.evaluate("location.hash = 'other'")
    page.keyboard.press("ArrowRight")
    assert turns.count() == 4
    link = page.get_by_role("link", name="Open in the explorer").get_attribute("href")
    assert link == f"explore.html#d={one.dialogues[0].id}"


def test_active_filters_are_shown_and_can_be_removed(open_page: Callable[..., Page]) -> None:
    page = open_page("#f=gold:alert;category:unfounded,repeated&m=keyword")
    chips = page.locator(".filter-chip")
    assert chips.all_inner_texts() == ["gold: alert ✕", "category: unfounded or repeated ✕"]
    chips.first.click()
    assert chips.all_inner_texts() == ["category: unfounded or repeated ✕"]
    assert page.locator("[name=gold]").input_value() == ""


def test_the_shown_history_equals_that_of_the_session(
    browser: Browser, corpus: Corpus, systems: list[Predictions], tmp_path: Path
) -> None:
    half, template = systems[1], load_template("turn")
    dialogue = corpus.dialogues[6]
    for history in ("self", "gold", "none"):
        record = half.record.model_copy(update={"history": history})
        page = browser.new_page()
        site = explore(explorer_data(corpus, [replace(half, record=record)]))
        page.goto(write_site(tmp_path / history, site))
        page.locator("[data-ready]").wait_for(state="attached")
        session = Session(dialogue, template, history)
        starts = np.searchsorted(corpus.dialogue_of, 6)
        for place, turn in enumerate(dialogue.user_turns):
            assert session.prompt is not None
            page.evaluate("hash => { location.hash = hash; }", f"#d=d0006&t={turn.turn_id + 1}")
            page.locator(".turn h3", has_text=f"Turn {turn.turn_id + 1}").wait_for()
            if not place:
                page.click(".open-text")
            seen = page.locator("pre[aria-label=History]")
            seen.wait_for(state="attached")
            assert seen.text_content() == session.prompt.history
            session.answer(Answer(format_mask(int(half.masks[starts + place]))))
        page.close()


def test_no_file_has_text_of_another_corpus(
    open_page: Callable[..., Page], corpus: Corpus, systems: list[Predictions], tmp_path: Path
) -> None:
    real = replace(corpus, name="hub-test", synthetic=False)
    moved = [replace(run, corpus=replace(run.corpus, synthetic=False)) for run in systems]
    moved[:2] = [replace(run, corpus=real) for run in moved[:2]]
    page = open_page(
        "#d=d0003&m=keyword", write_site(tmp_path / "real", explore(explorer_data(real, moved)))
    )
    written = [path.read_text("utf-8") for path in (tmp_path / "real").rglob("*") if path.is_file()]
    assert not [text for text in written if SECRET in text or "and more" in text]
    assert page.locator(".gate").count() == 0
    assert "not part of this page" in page.locator(".notice").first.inner_text()
    requests = explore(explorer_data(real, moved, text=True))
    page = open_page("#d=d0003&m=keyword", write_site(tmp_path / "asked", requests))
    assert "do not publish" in page.locator(".notice").first.inner_text()
    assert SECRET not in page.content()
