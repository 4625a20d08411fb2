"""Statements of pages: corpus, distinct systems, and published values."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cradle_lib
from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.detection.runs.find_runs import distinct_runs, stored_runs
from cradle_lib.display.banner import banner
from cradle_lib.display.explorer.explorer import Explorer
from cradle_lib.display.notice import Notice, finding
from cradle_lib.display.table import Table, show
from cradle_lib.display.theme import Picture
from cradle_lib.published import published_table

from .test_notebooks import show as show_page


def renamed(run: Predictions, name: str) -> Predictions:
    return replace(run, record=run.record.model_copy(update={"name": name}))


@pytest.fixture
def systems(corpus: Corpus, make_run: Callable[..., Predictions]) -> list[Predictions]:
    """Two runs with equal predictions, one with fewer, and one with none."""
    less = np.where(np.arange(len(corpus.gold)) % 2, corpus.gold, 0).astype(np.uint16)
    nothing = np.zeros_like(corpus.gold)
    return [
        renamed(make_run("tuned", corpus.gold), "Small, tuned"),
        renamed(make_run("tuned-wide", corpus.gold), "Small, tuned, wide"),
        renamed(make_run("half", less), "Half"),
        renamed(make_run("none", nothing), "None"),
    ]


def test_runs_with_the_same_labels_are_one_system(systems: list[Predictions]) -> None:
    names = [run.record.name for run in distinct_runs(systems)]
    assert names == ["Small, tuned (= tuned, wide)", "Half", "None"]
    unparsed = replace(systems[3], outcomes=np.ones_like(systems[3].outcomes))
    both = [*systems[3:], renamed(unparsed, "Unreadable")]
    assert [run.record.name for run in distinct_runs(both)] == ["None (= Unreadable)"]
    assert len(distinct_runs(both, answers=True)) == 2
    # Runs over different dialogues are different systems.
    part = systems[0].subset(systems[0].corpus.subset(range(4), "four"))
    assert len(distinct_runs([systems[0], part])) == 2


def test_the_leaderboard_describes_the_systems_that_it_shows(
    systems: list[Predictions], corpus: Corpus
) -> None:
    plain, adapted, *others = systems
    settings = {"weights": "base + adapter", "decoding": {"mode": "constrained"}}
    record = adapted.record.model_copy(update=settings)
    adapted = replace(adapted, masks=others[0].masks & 1, record=record)

    shown = show_page("results", {"draws": 20}, corpus, [plain, adapted, *others])

    [table] = [item.frame for item in shown if isinstance(item, Table) and "method" in item.frame]
    assert [*table["system"]] == ["Small, tuned", "Small, tuned, wide", "Half", "None"]
    assert "with an adapter; can only give valid answers" in table["method"][1]
    assert "adapter" not in table["method"][0]


def test_equal_systems_share_a_row(systems: list[Predictions], corpus: Corpus) -> None:
    shown = show_page("results", {"draws": 20}, corpus, systems)
    text = " ".join(
        f"{item!r} {item.frame.to_csv()}" if isinstance(item, Table) else repr(item)
        for item in shown
        if isinstance(item, Table | Picture | Notice)
    )
    assert "Small, tuned (= tuned, wide)" in text
    assert "Small, tuned, wide" not in text
    [headline] = [item for item in shown[-1:] if isinstance(item, Notice)]
    rare = "This page has no result for this corpus."
    assert headline.message.startswith("On the surrogate corpus, ") or headline.message == rare
    # A system without predictions is never the best one.
    assert "None" not in headline.message


def test_the_template_run_is_only_on_its_own_page() -> None:
    found = stored_runs(cradle_lib.load_corpus("surrogate", "test"))
    assert paths.TEMPLATE_RUN not in {run.record.model for run in found}


def test_a_headline_names_only_the_surrogate(corpus: Corpus) -> None:
    banner(corpus=corpus, model_annotators=True)
    start = "On the surrogate corpus, with language models as annotators, "
    assert finding("half of them agree.").message == f"{start}half of them agree."
    banner(corpus=replace(corpus, synthetic=False))
    assert finding("half of them agree.").message == "Half of them agree."


def test_every_download_has_its_corpus(corpus: Corpus) -> None:
    banner(corpus=corpus, model_annotators=True)
    html = show(pd.DataFrame({"n": [1, 2]}), "Two numbers.")._repr_html_()
    [data] = re.findall(r'href="data:text/csv;base64,([^"]+)"', html)
    rows = [*csv.DictReader(io.StringIO(base64.b64decode(data).decode()))]
    about = {"corpus": corpus.name, "fingerprint": corpus.fingerprint}
    about |= {"annotators": "language models"}
    assert rows == [{"n": "1"} | about, {"n": "2"} | about]


def test_the_stated_chi_square_test_of_scenarios_is_exact() -> None:
    counts = [96, 97, 91, 67, 56, 97, 96]  # Sec 3.1 of the paper
    mean = sum(counts) / 7
    half = sum((n - mean) ** 2 for n in counts) / mean / 2
    # The tail of chi-square with 6 degrees of freedom is P(Poisson(half) < 3).
    exact = math.exp(-half) * (1 + half + half**2 / 2)
    page = (paths.BOOK / "departures.md").read_text("utf-8")
    assert f"(chi-square {2 * half:.1f}, p = {exact:.3f})".replace("0.0", ".0") in page


def test_four_published_cells_need_more_entries_than_gold_labels(corpus: Corpus) -> None:
    shown = show_page("implied", {}, corpus, [])
    [cells] = [t.frame for t in shown if isinstance(t, Table) and "printed" in t.frame][1:]
    for cell in cells.itertuples(index=False):
        gold, *_, fits = cell[-3:]
        possible = {round(k / gold, 2) for k in range(gold + 1)}
        assert (float(cell.printed) in possible) == (fits == "yes")
    assert (cells.iloc[:, -1] == "no").sum() == 4
    assert (cells.iloc[:, -2] - cells["gold labels"]).max() == 4


def influences(run: Predictions) -> np.ndarray:
    """Gives the influence of each dialogue on micro F1, by the formula of *who-is-better*."""
    gold, predicted = run.corpus.gold, run.masks
    hits = np.bincount(run.corpus.dialogue_of, np.bitwise_count(gold & predicted))
    sizes = np.bitwise_count(gold) + np.bitwise_count(predicted)
    sizes = np.bincount(run.corpus.dialogue_of, sizes)
    f1 = 2 * hits.sum() / sizes.sum()
    return (2 * hits - f1 * sizes) / sizes.sum()


def test_added_runs_change_no_verdict_of_the_default_set(
    corpus: Corpus, make_run: Callable[..., Predictions]
) -> None:
    generator = np.random.default_rng(5)

    def run(model: str, right: float) -> Predictions:
        masks = np.where(generator.random(len(corpus.gold)) < right, corpus.gold, 0)
        # With these false positives, all pairs differ on at least twenty dialogues.
        masks |= generator.random(len(corpus.gold)) < 0.15
        return renamed(make_run(model, masks.astype(np.uint16)), model)

    default = [run(model, share) for model, share in {"tfidf": 0.3, "keyword": 0.6}.items()]
    added = [run(f"mine-{place}", place / 10) for place in range(7)]
    settings = {"draws": 20, "permutations": 200}
    verdicts, headlines = [], []
    for runs in (default, default + added, [*default, run("best", 1.0)]):
        shown = show_page("who-is-better", settings, corpus, runs)
        tables = [item for item in shown if isinstance(item, Table)]
        family = [table for table in tables if "differences from the baseline" in table.caption]
        assert any("added runs" in table.caption for table in family) == (len(runs) > 2)
        columns = ["score", "adjusted_p", "verdict"]
        verdicts.append(
            [
                table.frame.loc[table.frame["system"] == "keyword", columns].values.tolist()
                for table in family
                if "added runs" not in table.caption
            ]
        )
        headlines.append(shown[-1].message)
        # Gaps and detectable differences that are compared have the same two decimals.
        [gaps] = [table for table in tables if table.caption.startswith("The paper's gaps")]
        one, other = (
            published_table()[f"result.turn.micro_f1.{name}"].value
            for name in ("gpt-oss-120b", "qwen3-32b")
        )
        assert str(gaps.rows[0][1]) == f"{one - other:+.2f}"
        [least] = [table for table in tables if table.caption.startswith("Detectable")]
        assert all(re.fullmatch(r"\d+\.\d\d", str(row[-1])) for row in least.rows)
        # Any two systems, from both sides.
        chosen = [table for table in tables if "from the chosen system" in table.caption]
        both = {
            (table.caption.split(":")[0], row.system): row.value
            for table in chosen
            for row in table.frame.query("level == 'Turn' and score == 'micro_f1'").itertuples()
        }
        assert len(both) == len(runs) * (len(runs) - 1)
        assert all(both[two, one] == -value for (one, two), value in both.items())
    assert len(verdicts[0]) == 3
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert "keyword has the highest micro F1" in headlines[0]
    assert "At turn level, 0 of 1 systems are significantly better than tfidf" in headlines[0]
    assert "is not distinguishable from" in headlines[1]
    assert "best has the highest micro F1 at turn level" in headlines[2]


def test_the_home_page_has_facts_about_the_paper(
    systems: list[Predictions], corpus: Corpus
) -> None:
    # The baseline has a false positive in each dialogue: without twenty dialogues on which systems
    # differ, there is no detectable difference.
    wrong = np.arange(len(corpus.gold)) % 4 == 0
    systems[2] = replace(systems[2], masks=systems[2].masks | wrong.astype(np.uint16))
    shown = show_page("home", {"draws": 20, "baseline": "half"}, corpus, systems)
    [facts] = [table.frame for table in shown if isinstance(table, Table)]
    found = dict(zip(facts["topic"], facts["finding"], strict=True))
    assert "only possible with 711 gold labels" in found["Number of scored labels"]
    headline, table = shown[-1].message, published_table()
    for level in ("turn", "dialogue", "confirm"):
        assert table[f"result.{level}.micro_f1.cradle-qwen3-32b"].text in headline
        claude = table.get(f"result.{level}.micro_f1.claude")
        assert claude is None or claude.text in headline
    assert "Claude is ahead at turn and dialogue level" in headline
    # A published gap of 3.5 points, and the two pairs of systems with the baseline.
    power = found[f"What {len(corpus)} dialogues can show"]
    assert power.startswith("gpt-oss-120b is 3.5 points of micro F1 above Qwen3-32B")
    full, half, nothing = (influences(run) for run in distinct_runs(systems))
    errors = [np.sqrt(((other - half) ** 2).sum()) for other in (full, nothing)]
    # A test at the 5 % level with 80 % power: 1.96 + 0.84 standard errors.
    ends = " to ".join(dict.fromkeys(f"{280.16 * error:.1f}" for error in sorted(errors)))
    assert f"only if it is at least {ends} points" in power
    assert "before correction for multiple tests" in power
    page = (paths.BOOK / "departures.md").read_text("utf-8")
    rows = sum(line.startswith("| ") for line in page.splitlines()) - 2
    entries = re.findall(r"^\d+\. ", page, flags=re.MULTILINE)
    assert entries == [f"{n}. " for n in range(1, len(entries) + 1)]
    assert f"has {rows} inconsistencies. In {len(entries)} places" in found["Text and tables"]
    assert f"in {rows} places" in page
    assert f"In {len(entries)} places" in page
    status = next(item.message for item in shown if isinstance(item, Notice))
    assert "None of the paper's models were run." in status
    # Published scores are in a separate figure.
    theirs, ours = (
        {row["system"] for row in csv.DictReader(io.StringIO(item.csv or ""))}
        for item in shown
        if isinstance(item, Picture)
    )
    assert ours == {"Small, tuned (= tuned, wide)", "Half", "None"}
    assert "Claude" in theirs
    # One dialogue is played, in which the leading system is right and wrong.
    [player] = [item for item in shown if isinstance(item, Explorer)]
    assert len(player.data["core"]["dialogues"]) == 1


def test_labels_with_unusable_answers_are_not_confused(
    systems: list[Predictions], corpus: Corpus
) -> None:
    # Every third answer is unusable; all others are correct.
    unusable = np.arange(len(corpus.gold)) % 3 == 0
    masks = np.where(unusable, 0, corpus.gold).astype(np.uint16)
    run = replace(systems[0], masks=masks, outcomes=unusable.astype(np.uint8))
    golds = [int(np.bitwise_count(corpus.gold[part]).sum()) for part in (~unusable, unusable)]
    assert min(golds) > 0
    shown = show_page("errors", {}, corpus, [run])
    headline = shown[-1].message
    share = 100 * golds[0] / sum(golds)
    assert (
        f"Small, tuned finds {golds[0]:,} of {sum(golds):,} gold labels ({share:.0f} %), misses 0 "
        "and confuses 0 with another label."
    ) in headline
    [picture] = [item for item in shown if isinstance(item, Picture) and "Heat map" in item.alt]
    assert f"{golds[1]:,} with an unusable answer, 0 different" in picture.alt


def test_only_bars_that_are_cut_end_in_an_arrow(
    systems: list[Predictions], corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[tuple[Any, ...]] = []
    original = cradle_lib.show_figure

    def show_figure(*args: Any, **more: Any) -> Any:
        figures.append(args)
        return original(*args, **more)

    monkeypatch.setattr(cradle_lib, "show_figure", show_figure, raising=False)
    everything = replace(systems[2], masks=np.full_like(corpus.gold, 0xFFFF))
    runs = [systems[2], renamed(everything, "All labels"), systems[0]]
    show_page("errors", {}, corpus, runs)
    draw, data = figures[0]
    axes = draw(data)
    assert [*data["system"]] == ["Half", "All labels"]
    [arrow] = [line for line in axes.lines if line.get_marker() == ">"]
    assert [*arrow.get_ydata()] == [1]
    assert axes.get_xlim()[1] < data.iloc[1, 1:].sum()


def test_the_first_page_counts_the_models_of_the_paper(
    systems: list[Predictions], corpus: Corpus
) -> None:
    generator = np.random.default_rng(2)
    made = list(systems)
    for place, about in enumerate(
        [
            # A function of an earlier version could have the id of a model of the paper.
            {"model": "gpt-5.1", "group": "own", "engine": "function"},
            # Two runs of one model are one model.
            {"model": "qwen3-32b"},
            {"model": "qwen3-32b"},
            {"model": "qwen3-14b"},
        ]
    ):
        masks = np.where(generator.random(len(corpus.gold)) < 0.5, corpus.gold, 0)
        run = replace(systems[0], masks=masks.astype(np.uint16))
        fields = about | {"name": f"Run {place}"}
        made.append(replace(run, record=run.record.model_copy(update=fields)))
    shown = show_page("home", {"draws": 20}, corpus, made)
    text = " ".join(item.message for item in shown if isinstance(item, Notice))
    assert "2 of the paper's models were run" in text


def test_a_sum_over_probes_counts_each_text_once() -> None:
    last = pd.read_csv(paths.DATA / "probes" / "probes.csv").groupby("dialogue_id").tail(1)
    [table] = [t for t in show_page("probes", {"models": ["keyword"]}) if isinstance(t, Table)]
    texts = table.frame.set_index("kind")["texts"]
    for name, kind in {"All disclosures": "disclosure", "All hard negatives": "hard"}.items():
        assert texts[name] == last.loc[last["kind"].str.contains(kind), "text"].nunique()
