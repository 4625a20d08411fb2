"""Downloads of the built pages, with numbers recomputed from journals and records."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection.models.registry import load_registry

from .site import Site

FILE = re.compile(r'download="([^"]+\.csv)"[^>]*href="data:text/csv;base64,([^"]+)"')
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|inf)")
WORDLESS = re.compile(r"[\W_]*")
CONSTRAINED = "smollm2-135m-tuned-constrained"
SYSTEMS = {
    "smollm2-135m": "SmolLM2-135M-Instruct",
    "smollm2-135m-tuned": "SmolLM2-135M, tuned",
}
QUIET = "Flagged in dialogues without labels"


def files(page: Path) -> Iterator[tuple[str, str]]:
    for name, data in FILE.findall(page.read_text("utf-8")):
        yield name, base64.b64decode(data).decode("utf-8")


def frame(site: Site, page: str, *columns: str) -> pd.DataFrame:
    """Returns the first file of a page with these columns."""
    every = (
        pd.read_csv(io.StringIO(text)) for _, text in files(site.folder / f"sections/{page}.html")
    )
    return next(found for found in every if {*columns} <= {*found.columns})


def journal(corpus: str, model: str) -> list[dict[str, Any]]:
    """Reads the answers of a shipped run without the library, one per user turn."""
    text = (paths.SHIPPED_RUNS / corpus / f"{model}.jsonl").read_text("utf-8")
    lines = [line for line in map(json.loads, text.splitlines()) if "record" not in line]
    return list({(line["dialogue"], line["turn"]): line for line in lines}.values())


def test_missing_values_in_downloads_are_empty(site: Site) -> None:
    wrong, columns = [], 0
    for page in site.pages:
        for name, text in files(site.folder / page):
            rows = list(csv.DictReader(io.StringIO(text, newline="")))
            for column in rows[0] if rows else ():
                known = [row[column] for row in rows if row[column]]
                columns += any(map(NUMBER.fullmatch, known))
                # A dash or other punctuation instead of a value.
                wrong += [(page, name, column, x) for x in known if WORDLESS.fullmatch(x)]
    assert columns > 100
    assert wrong == []


def test_every_table_and_heat_map_has_a_download(site: Site) -> None:
    seen = 0
    for page in site.pages:
        text = (site.folder / page).read_text("utf-8")
        shown = text.count('<table class="cradle-table">')
        shown += text.count('<img alt="Heat map')
        seen += shown
        assert len(FILE.findall(text)) >= shown, page
    assert seen > 50


def test_answers_tokens_and_times_equal_those_of_the_journals(site: Site) -> None:
    report = frame(site, "runs", "system", "unparsed").set_index("system")
    used = frame(site, "runs", "system", "prompt_tokens").set_index("system")
    page = html.unescape((site.folder / "sections/runs.html").read_text("utf-8"))
    for model, name in SYSTEMS.items():
        lines = journal("surrogate-test", model)
        outcomes = Counter(line["outcome"] for line in lines)
        none = sum(line["labels"] == "none" for line in lines if line["outcome"] == "ok")
        others = ("unparsed", "refused", "failed")
        counts = [len(lines), outcomes["ok"] - none, none, *(outcomes[each] for each in others)]
        assert report.loc[name, ["user_turns", "labels", "none", *others]].tolist() == counts
        unusable = len(lines) - outcomes["ok"]
        assert (f"{name} ({unusable:,} of {len(lines):,})" in page) == (unusable > 0)
        tokens = [sum(line[f"tokens_{end}"] for line in lines) for end in ("in", "out")]
        row = used.loc[name.partition(" (")[0]]
        assert row[["answers", "prompt_tokens", "answer_tokens"]].tolist() == [len(lines), *tokens]
        assert row["seconds"] == pytest.approx(median(each["seconds"] for each in lines))
    # Uncounted tokens are missing, not zero.
    assert used.loc["Keyword lexicon", ["prompt_tokens", "answer_tokens"]].isna().all()
    # Each run has its record.
    for name in ("tuned", "tuned, constrained"):
        assert f"SmolLM2-135M, {name}: record of the run." in page


def test_the_comparison_of_engines_has_flips_tokens_and_differing_fields(site: Site) -> None:
    report = frame(site, "speed", "meaning", "of").set_index("meaning")
    flips = report.loc["Dialogues with a flip"]
    assert flips[["count", "of", "value", "low"]].tolist() == [0, 100, 0, 0]
    assert flips["high"] == pytest.approx(1 - 0.05 ** (1 / 100))
    used = frame(site, "speed", "prompt_tokens_computed")
    (wave, whole), (reference, _) = used[["prompt_tokens_computed", "prompt_tokens"]].to_numpy()
    # The reference engine computes every prompt completely.
    assert wave < reference == whole
    fields = {*frame(site, "speed", "field")["field"]}
    assert "engine" in fields
    assert not {"prompt", "weights"} & fields


def test_results_with_a_bias_equal_a_count_from_the_journal(site: Site) -> None:
    by_odds = frame(site, "training", "odds")
    dev = load_corpus("surrogate", "dev")
    gold = {(d.id, t.turn_id): t.mask for d in dev for t in d.turns if t.asked}
    quiet = {d.id for d in dev if not any(t.mask for t in d.turns)}
    lines = journal(dev.name, CONSTRAINED)
    for odds, rows in by_odds.groupby("odds"):
        seen = Counter[str]()
        for line in lines:
            chances = {branch: math.exp(value) for branch, value in line["choices"][0].items()}
            flagged = max(chances["alert"], chances["confirm"]) > odds * chances["none"]
            labelled = gold[line["dialogue"], line["turn"]] > 0
            seen["gold"] += labelled
            seen["flagged"] += flagged
            seen["hits"] += flagged and labelled
            seen["quiet"] += line["dialogue"] in quiet
            seen["alarms"] += flagged and line["dialogue"] in quiet
        values = rows.set_index("measure")["value"]
        assert values[QUIET] == pytest.approx(seen["alarms"] / seen["quiet"])
        assert values["Recall of turns with a label"] == pytest.approx(seen["hits"] / seen["gold"])
        assert values["Precision of flagged turns"] == pytest.approx(seen["hits"] / seen["flagged"])
    # The registry's bias follows from the lowest odds that are acceptable on dev.
    few = by_odds[(by_odds["measure"] == QUIET) & (by_odds["value"] < 1 / 100)]
    for model in ("smollm2-135m-tuned", CONSTRAINED, "smollm2-135m-tuned-reference"):
        decoding = load_registry()[model].decoding
        assert decoding is not None
        assert decoding.none_bias == round(math.log(few["odds"].min()), 1)


def test_the_cost_of_the_papers_recipe_uses_the_papers_dialogues(site: Site) -> None:
    path = paths.DATA / "adapters/whole-dialogues/training.json"
    record = json.loads(path.read_text("utf-8"))
    tokens = 3 * 3058 * record["tokens"] / 1500  # three epochs, Sec 4.2 and Appendix D.2
    assert record["dialogues"] == 1500
    row = frame(site, "training", "sequences").iloc[0]
    assert row["tokens"] == pytest.approx(tokens)
    assert row["hours"] == pytest.approx(6 * 32.761446400e9 * tokens / (2 * 989e12 / 2) / 3600)


def test_the_table_of_repeated_runs_has_the_number_of_sampled_dialogues(site: Site) -> None:
    folder = paths.SHIPPED_RUNS / "repeats"
    header = next(folder.glob("temperature-0.7/*/*/*.jsonl")).read_text("utf-8").splitlines()[0]
    chosen = json.loads(header)["record"]["dialogues"]
    spread = frame(site, "who-is-better", "sd")
    assert set(spread["dialogues"]) == {len(chosen)} == {100}


def test_the_probe_page_counts_the_flagged_last_messages_of_a_journal(site: Site) -> None:
    table = pd.read_csv(paths.DATA / "probes" / "probes.csv")
    last = table.groupby("dialogue_id", sort=False).tail(1)
    answers = {(x["dialogue"], x["turn"]): x["labels"] for x in journal("probes", CONSTRAINED)}
    places = zip(last["dialogue_id"], last["turn_id"], strict=True)
    flagged = last.assign(flagged=[answers[place] != "none" for place in places])
    counts = flagged.groupby("kind")["flagged"].agg(["size", "sum"])
    shown = frame(site, "probes", "kind", "texts", "value")
    shown = shown[shown["system"] == "SmolLM2-135M, tuned, constrained"].set_index("kind")
    for kind, name in (("disclosure_first", "Disclosure, first message"), ("hard_idiom", "Idiom")):
        assert shown.loc[name, ["texts", "count"]].tolist() == counts.loc[kind].tolist()
    hard = counts[counts.index.str.startswith("hard")].sum()
    assert shown.loc["All hard negatives", "value"] == pytest.approx(hard["sum"] / hard["size"])
