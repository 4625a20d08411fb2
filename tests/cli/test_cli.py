"""The command line, started as a user starts it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cradle_lib import labels
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import Session, read_journal
from cradle_lib.prompts import load_template, template_files
from cradle_lib.published import published_label_counts

from ..command import cradle

TINY = [
    (0, "User: I passed my exam!", "none"),
    (1, "Listener: Well done.", "none"),
    (2, "User: I have been hurting myself again.", "confirm_SH_ongoing"),
    (0, "User: The bus was late.", "none"),
]


def infer(engine: str, corpus: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs ``cradle infer`` with an engine that the code of a test defines."""
    code = (
        "from cradle_lib.detection import Answer, Outcome\n"
        "from cradle_lib.detection.baselines.always_none import AlwaysNone\n"
        f"AlwaysNone.reply = lambda self, prompt: {engine}\n"
    )
    return cradle("infer", "--model", "always-none", "--corpus", corpus, *arguments, code=code)


@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        ("Answer('none')", 0, "3 user turns: 3 ok, 0 unparsed, 0 refused, 0 failed."),
        ("Answer('Well, hm.')", 1, "0 ok, 3 unparsed, 0 refused, 0 failed."),
        ("Answer('', Outcome.FAILED, 'HTTP 500')", 1, "0 ok, 0 unparsed, 0 refused, 3 failed."),
        (
            "Answer('', Outcome.FAILED, 'HTTP 500') if prompt.turn else Answer('none')",
            1,
            "2 ok, 0 unparsed, 0 refused, 1 failed.",
        ),
        ("Answer('', Outcome.REFUSED) if prompt.turn else Answer('none')", 0, "1 refused"),
    ],
)
def test_a_run_ends_with_its_outcomes_and_is_a_success_only_if_it_was_one(
    tiny: Path, tmp_path: Path, answer: str, status: int, told: str
) -> None:
    done = infer(answer, tiny, "--out", tmp_path)
    assert done.returncode == status, done.stderr
    assert told in done.stdout
    journal = tmp_path / "tiny" / "always-none.jsonl"
    if status == 0:
        assert f"Next: cradle score {journal} --corpus {tiny}" in done.stdout
        scored = cradle(*done.stdout.partition("Next: cradle ")[2].split())
        assert scored.returncode == 0, scored.stderr
    if "failed" in told and "0 failed" not in told:
        assert "The same command asks the questions that failed again." in done.stderr
        assert "HTTP 500" in done.stderr


def test_answers_that_needed_cleaning_are_counted_beside_the_outcomes(
    tiny: Path, tmp_path: Path
) -> None:
    cut = "Answer('**None**', Outcome.UNPARSED, 'cut at 5 tokens')"
    done = infer(f"{cut} if prompt.turn else Answer('- none')", tiny, "--out", tmp_path)
    told = "Of the ok answers 2 needed cleaning, such as removing Markdown."
    assert "3 user turns: 2 ok, 1 unparsed, 0 refused, 0 failed." in done.stdout
    assert told in done.stdout
    journal = tmp_path / "tiny" / "always-none.jsonl"
    score = ("score", journal, "--corpus", tiny, "--draws", "0")
    assert told in cradle(*score).stdout
    assert json.loads(cradle(*score, "--json").stdout)["dialogue"]["cleaned"] == 2
    asked = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    for line in asked:
        shown = cradle("show", journal, line["dialogue"], str(line["turn"]), "--corpus", tiny)
        assert ("ok after cleaning" in shown.stderr) is (line["outcome"] == "ok")
    infer("Answer('none')", tiny, "--out", tmp_path / "plain")
    plain = cradle("score", tmp_path / "plain" / "tiny" / "always-none.jsonl", "--corpus", tiny)
    assert "cleaning" not in plain.stdout


def test_the_next_command_of_a_shard_and_of_a_part_is_one_that_works(
    tiny: Path, tmp_path: Path
) -> None:
    for shard in ("0/2", "1/2"):
        done = infer("Answer('none')", tiny, "--out", tmp_path, "--shard", shard)
        assert "Next, when all 2 shards are made: cradle score" in done.stdout
    scored = cradle(*done.stdout.partition("are made: cradle ")[2].split())
    assert "3 of 3 user turns" in scored.stdout
    part = infer("Answer('none')", tiny, "--out", tmp_path / "part", "--set", "limit=1")
    scored = cradle(*part.stdout.partition("Next: cradle ")[2].split())
    assert "2 of 3 user turns" in scored.stdout
    whole = tmp_path / "part" / "tiny" / "always-none.jsonl"
    infer("Answer('none')", tiny, "--out", tmp_path / "part")
    shards = tmp_path / "tiny" / "always-none.jsonl"
    joined = cradle("compare", whole, shards, "--corpus", tiny)
    assert joined.returncode == 0, joined.stderr


def test_every_convention_can_be_chosen_and_stands_in_the_signature(
    tiny: Path, tmp_path: Path
) -> None:
    infer("Answer('Well, hm.' if prompt.turn else 'none')", tiny, "--out", tmp_path)
    journal = tmp_path / "tiny" / "always-none.jsonl"

    def exact_match(*conventions: str) -> tuple[float, str]:
        options = [part for pair in conventions for part in ("--convention", pair)]
        done = cradle("score", journal, "--corpus", tiny, "--json", "--draws", "0", *options)
        assert done.returncode == 0, done.stderr
        turn = json.loads(done.stdout)["turn"]
        [row] = [row for row in turn["scores"] if row["score"] == "exact_match"]
        return row["value"], turn["signature"]

    # Two of three turns were answered with `none`; both of them have no gold label. What could
    # not be read has one, so that only leaving it out changes the score.
    assert exact_match()[0] == pytest.approx(2 / 3)
    excluded, signature = exact_match("unparsed=exclude", "empty_jaccard=0")
    assert excluded == 1.0
    assert "unparsed:exclude" in signature
    assert "empty:0" in signature
    for wrong, message in (
        ("colour=red", "no convention 'colour=red'. Give name=value with one of empty_jaccard"),
        ("unparsed=maybe", "Choose one of miss, none, exclude"),
        ("zero_division=high", "It must lie between 0 and 1"),
    ):
        done = cradle("score", journal, "--corpus", tiny, "--convention", wrong)
        assert done.returncode == 2
        assert message in done.stderr


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.parquet"
    rows = [dict(zip(("turn_id", "text", "labels"), row, strict=True)) for row in TINY]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_the_surrogates_test_split_has_all_published_counts() -> None:
    done = cradle("data", "check", "data/surrogate/test.parquet")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "differs" not in done.stdout
    assert "All counts are those of the published test split." in done.stdout
    for label, count in published_label_counts().items():
        row = next(line for line in done.stdout.splitlines() if f" {label} " in line)
        assert row.count(f" {count} ") == 2
    assert len(published_label_counts()) == len(labels.LABELS)


def test_a_corpus_that_claims_to_be_the_test_split_and_differs_exits_1(tiny: Path) -> None:
    assert cradle("data", "check", tiny).returncode == 0
    claims = tiny.rename(tiny.with_name("test.parquet"))
    done = cradle("data", "check", claims)
    assert done.returncode == 1
    assert "differs by -598" in done.stdout
    assert "Not the published test split: 24 counts differ." in done.stdout
    assert "`--no-paper`" in done.stdout
    other = cradle("data", "check", claims, "--no-paper")
    assert other.returncode == 0, other.stderr
    assert "differs" not in other.stdout


def test_a_corpus_of_ones_own_is_counted_and_not_compared(tiny: Path) -> None:
    own = tiny.with_name("mine.csv")
    own.write_text(
        "turn_id,text,labels,dialogue_id,scenario\n"
        "0,User: Nobody may read this.,none,talk-1,S2\n"
        "1,- never,alert_past,talk-1,S2\n"
        "2,User: Hm.,confirm_SH_past,talk-1,S2\n"
        "0,Listener: Well.,none,talk-2,S4\n",
        encoding="utf-8",
    )
    done = cradle("data", "check", own)
    assert done.returncode == 0, done.stderr
    assert "published" not in done.stdout.lower()
    assert "differs" not in done.stdout
    found = {
        name: count
        for line in done.stdout.splitlines()
        if line.count("│") == 3
        for name, count in [[cell.strip() for cell in line.strip("│").split("│")]]
    }
    assert found.pop("dialogues") == "2"
    assert found.pop("turns") == "4"
    assert found.pop("user turns") == "2"
    assert found.pop("labels") == "2"
    assert (found.pop("dialogues with both"), found.pop("dialogues with neither")) == ("1", "1")
    assert (found.pop("scenario S2"), found.pop("scenario S4")) == ("1", "1")
    assert found.pop("confirm_SH_past") == "1"
    assert set(found.values()) <= {"0", "1"}
    for quirk in (
        "dialogues without a user turn, where no model is asked (1, the first: talk-2)",
        "rows without a speaker, which continue the row above (1, the first: talk-1, turn 1)",
        "labels on rows where no model is asked (1, the first: talk-1, turn 1)",
    ):
        assert f"Worth a look: {quirk}." in done.stdout
    assert "Nobody" not in done.stdout
    assert "never" not in done.stdout

    asked = cradle("data", "check", own, "--paper")
    assert asked.returncode == 1
    assert "differs by -598" in asked.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("data", "check", "absent.csv"), "absent.csv: no such file. Check the path."),
        (("infer", "--model", "keywrod"), "Did you mean"),
        (("infer", "--model", "keyword", "--set", "history=mine"), "no history 'mine'"),
        (("infer", "--model", "keyword", "--shard", "4/4"), "expected i/n"),
        (("score", "absent.jsonl"), "absent.jsonl"),
        (("prompts", "show", "absent"), "no prompt template 'absent'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], expected: str) -> None:
    done = cradle(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_a_run_is_made_scored_and_made_again_without_asking_twice(
    tiny: Path, tmp_path: Path
) -> None:
    infer = ("infer", "--model", "keyword", "--corpus", tiny, "--out", tmp_path / "runs")
    done = cradle(*infer)
    assert done.returncode == 0, done.stderr
    journal = tmp_path / "runs" / "tiny" / "keyword.jsonl"
    assert f"Journal: {journal}" in done.stdout
    before = journal.read_bytes()
    assert len(before.splitlines()) == 1 + 3
    assert cradle(*infer).returncode == 0
    assert journal.read_bytes() == before

    scored = cradle("score", journal, "--corpus", tiny, "--draws", "100", "--json")
    assert scored.returncode == 0, scored.stderr
    result = json.loads(scored.stdout)
    assert set(result) == {"turn", "dialogue", "confirm"}
    # Three user turns, all three right: the keyword baseline knows this sentence.
    values = {row["score"]: row["value"] for row in result["turn"]["scores"]}
    assert values["exact_match"] == 1.0
    assert result["turn"]["turns"] == 3
    table = cradle("score", journal, "--corpus", tiny, "--draws", "100")
    assert "exact match" in table.stdout
    assert result["turn"]["signature"] in table.stdout


def test_a_partial_run_is_refused_unless_asked_for(tiny: Path, tmp_path: Path) -> None:
    done = cradle(
        *("infer", "--model", "always-none", "--corpus", tiny, "--out", tmp_path / "runs"),
        *("--set", "limit=1"),
    )
    assert done.returncode == 0, done.stderr
    journal = tmp_path / "runs" / "tiny" / "always-none.jsonl"
    refused = cradle("score", journal, "--corpus", tiny)
    assert refused.returncode == 2
    assert "2 of 3 user turns" in refused.stderr
    partial = cradle("score", journal, "--corpus", tiny, "--partial", "--draws", "10")
    assert partial.returncode == 0, partial.stderr
    assert "2 of 3 user turns" in partial.stdout


def test_a_question_is_shown_word_for_word_with_its_answer(tiny: Path, tmp_path: Path) -> None:
    done = cradle("infer", "--model", "keyword", "--corpus", tiny, "--out", tmp_path / "runs")
    journal = tmp_path / "runs" / "tiny" / "keyword.jsonl"
    assert done.returncode == 0, done.stderr
    corpus = load_corpus(str(tiny))
    template = load_template(read_journal(journal)[0].prompt)
    dialogue = corpus.dialogues[0]
    last = dialogue.user_turns[-1]
    stored = read_journal(journal)[1]
    before = [line for line in stored if line.turn < last.turn_id]
    prompt = Session(dialogue, template, stored=before).prompt
    assert prompt is not None
    answer = next(p.answer for p in stored if (p.dialogue, p.turn) == (dialogue.id, last.turn_id))
    shown = cradle("show", journal, dialogue.id, last.turn_id, "--corpus", tiny)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == f"{prompt.text}\n{answer}\n"
    assert cradle("prompts", "show", "brief").stdout.rstrip("\n") == (
        template_files()["brief"].read_text(encoding="utf-8").rstrip("\n")
    )

    for arguments, expected in (
        ((dialogue.id, 99), "Answered turns: "),
        (("nobody", 0), "none of this dialogue"),
        ((dialogue.id, last.turn_id, "--corpus", "surrogate"), "asked with other words"),
    ):
        given = arguments if "--corpus" in arguments else (*arguments, "--corpus", tiny)
        wrong = cradle("show", journal, *given)
        assert wrong.returncode == 2
        assert expected in wrong.stderr


def test_models_and_prompts_are_listed() -> None:
    models = cradle("models", "list")
    assert models.returncode == 0, models.stderr
    for expected in ("always-none", "smollm2-135m", "cradle-qwen3-32b"):
        assert expected in models.stdout
    prompts = cradle("prompts", "list")
    assert prompts.returncode == 0, prompts.stderr
    assert "turn " in prompts.stdout
    assert "append " in prompts.stdout
