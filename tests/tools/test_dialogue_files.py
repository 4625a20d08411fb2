"""Text files of written dialogues: reading, refusals and measures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nltk import ngrams

from cradle_lib.errors import CorpusError
from tools.surrogate.commands import run
from tools.surrogate.dialogue_files import (
    Row,
    Written,
    check_file,
    load_dialogues,
)
from tools.surrogate.measures import Measure, measure, words_of
from tools.surrogate.plans import read_plans


def filled(split: str = "test", number: int = 0) -> str:
    """Writes a file as its plans ask for; each row has words that no other row has."""
    blocks = []
    for plan in read_plans().values():
        if plan.split != split or plan.dialogue // 50 != number:
            continue
        lines = [f"# id: {plan.id}", f"# plan: {plan.hash}", "# seed: somebody"]
        if any(label.startswith("alert") for label in plan.labels):
            lines.append("# alert-could-be: SI, DV")
        for at, (speaker, labels) in enumerate(plan.rows):
            start = {"U": "User:", "L": "Listener:", "-": "-"}[speaker]
            end = f" [{'; '.join(labels)}]" if labels else ""
            lines.append(f"{start} this is only row {at} of {plan.id}{end}")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "test" / "000.txt"
    path.parent.mkdir()
    path.write_text(filled(), encoding="utf-8")
    return path


@pytest.mark.parametrize(("split", "number", "size"), [("test", 0, 50), ("dev", 8, 20)])
def test_a_file_as_its_plans_ask_for_is_valid(
    split: str, number: int, size: int, tmp_path: Path
) -> None:
    path = tmp_path / split / f"{number:03}.txt"
    path.parent.mkdir()
    path.write_text(filled(split, number), encoding="utf-8")
    dialogues = load_dialogues(path)
    assert [d.id for d in dialogues] == [f"{split}-{number * 50 + k:04}" for k in range(size)]
    assert all(row.text.startswith("this is only row") for d in dialogues for row in d.rows)


# A changed line (from 0: three headers, then the rows) of the first dialogue; the fault has no row
# if the dialogue as a whole is wrong.
@pytest.mark.parametrize(
    ("line", "new", "row", "words"),
    [
        (1, "# plan: 0123456789", None, "the header says plan 0123456789, expected"),
        (2, "", None, "no header '# seed"),
        (2, "# mood: sad", 0, "neither a header nor a row"),
        (3, "User: one more row here\nUser: and another one", None, "rows, the plan has"),
        (3, "Listener: I begin this time", 0, "the speaker is L, the plan has U"),
        (4, "Friend: somebody else talks", 1, "neither a header nor a row"),
        (4, "Listener:", 1, "it has no text"),
        (5, "User: two  spaces", 2, "a space at an end, two spaces"),
        (5, "User: a hidden\u202e mark", 2, "an invisible character"),
        (4, "Listener: as he said [laughs] then", 1, "it has a bracket '['"),
        (4, "Listener: so [alert_ongoing]", 1, "labels alert_ongoing, the plan has none"),
        (4, "Listener: so [alert_past;alert_ongoing]", 1, "there is no label"),
        (4, "Listener: was it the Knife drawer", 1, "left out here: 'knife'"),
        (4, "Listener: and then Miranda came", 1, "looks like a name: 'Miranda'"),
        (5, "User: this is only row 0 of test-0000", 2, "it repeats row 0"),
    ],
)
def test_a_broken_dialogue_is_refused_with_its_place(
    line: int, new: str, row: int | None, words: str, file: Path
) -> None:
    lines = file.read_text(encoding="utf-8").split("\n")
    assert lines[0] == "# id: test-0000"
    assert lines[7].endswith("[confirm_SHA_ongoing]")
    lines[line] = new
    file.write_text("\n".join(lines), encoding="utf-8")
    _, faults = check_file(file)
    assert {fault.dialogue for fault in faults} == {"test-0000"}
    assert any(fault.row == row and words in fault.problem for fault in faults), faults
    with pytest.raises(CorpusError, match=r"000\.txt: test-0000"):
        load_dialogues(file)


def test_an_alert_needs_two_possible_types(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("SI, DV", "SI,", 1), encoding="utf-8")
    (fault,) = check_file(file)[1]
    assert (fault.dialogue, fault.row) == ("test-0001", None)
    assert "two or more types" in fault.problem


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ([0, *range(2, 50)], {"test-0001": "missing"}),
        ([1, 0, *range(2, 50)], {"test-0000": "it comes after test-0001"}),
        ([*range(50), 50], {"test-0050": "belongs in another file"}),
        ([*range(50), 51], {"test-9999": "no such dialogue"}),
    ],
)
def test_a_file_has_its_fifty_dialogues_in_order(
    order: list[int], words: dict[str, str], file: Path
) -> None:
    more = filled("test", 1).split("\n\n")[0]
    blocks = [*filled().strip().split("\n\n"), more, more.replace("test-0050", "test-9999")]
    file.write_text("\n\n".join(blocks[at] for at in order), encoding="utf-8")
    _, faults = check_file(file)
    assert [fault.dialogue for fault in faults] == list(words)
    assert all(words[fault.dialogue] in fault.problem for fault in faults)


def test_a_file_in_another_encoding_is_refused(file: Path) -> None:
    file.write_bytes(b"User: \x80")
    with pytest.raises(CorpusError, match=r"000\.txt: the file can't be read as UTF-8"):
        check_file(file)


def test_text_outside_a_dialogue_and_a_missing_file_are_faults(file: Path) -> None:
    file.write_text("User: hello\n\n" + filled(), encoding="utf-8")
    assert "line 1 is outside a dialogue" in check_file(file)[1][0].problem
    file.unlink()
    assert check_file(file)[1][0].problem == "the file is missing"


def test_the_command_prints_faults_and_measures(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", str(file)]) == 1
    assert ", 50 dialogues, 0 faults" in capsys.readouterr().out
    file.write_text(file.read_text(encoding="utf-8").replace("[alert_", "[alarm_"), "utf-8")
    assert run(["check", str(file)]) == 1
    out = capsys.readouterr().out
    assert "000.txt: test-0001, row 2: there is no label 'alarm_past'" in out
    assert re.search(r"MISSED +% with a question +0\.0 +8 to 25", out)
    other = file.rename(file.with_name("012.txt"))
    assert run(["check", str(other)]) == 2
    assert "test has no dialogue 600" in capsys.readouterr().err
    other = other.rename(file.with_name("draft.txt"))
    assert run(["check", str(other)]) == 2
    assert "not named SPLIT/NNN" in capsys.readouterr().err


def measured(*dialogues: list[str], speakers: str = "UL") -> dict[str, Measure]:
    """Measures dialogues given as texts; speakers alternate."""
    written = [
        Written(
            f"test-{at:04}",
            rows=[Row(speakers[k % 2], text) for k, text in enumerate(texts)],
        )
        for at, texts in enumerate(dialogues)
    ]
    return {one.name: one for one in measure(written)}


def test_counts_of_a_worked_example() -> None:
    found = measured(
        ["i dont know", "Sorry to hear that. What was it?", "The bike again, I'm fed up.", "Oh."],
        ["Is the bike on the train. Or Friday?", "Are you safe at home?", "yes", "Good bike."],
    )
    value = {name: one.value for name, one in found.items()}
    assert value["median words"] == 4.5  # 3, 6, 8, 1
    assert value["% of three words or fewer"] == 50
    assert value["% without end punctuation"] == 50
    assert value["% in lower case"] == 50
    assert value["% with a question"] == 25
    assert value["% of several sentences"] == 25
    assert value["commas per word"] == 1 / 18
    assert value["% that name a feeling"] == 25
    assert value["Listener: longest row in words"] == 7
    assert value["Listener: % plain empathy"] == 25
    assert value["% of dialogues with a date"] == 50
    assert value["% with a question about safety"] == 50
    # The end of the second dialogue returns to the bike of its first row.
    assert value["% whose end recalls the beginning"] == 50


def test_repeated_four_grams_agree_with_nltk() -> None:
    texts = [
        "we sat in the old car and we sat in the rain",
        "he sat in the old car",
        "no",
        "why not",
    ]
    grams = [gram for text in texts[::2] + texts[1::2] for gram in ngrams(words_of(text), 4)]
    repeated = sum(grams.count(gram) > 1 for gram in grams)
    both = measured([texts[0], "x", texts[1], "x", texts[2], "x", texts[3], "x"])
    assert both["% repeated four-grams"].value == pytest.approx(100 * repeated / len(grams))


def test_frequent_words_and_equal_openings_are_listed() -> None:
    texts = [[f"my n{k} lamp broke", "Which harbour?"] for k in range(4)]
    found = measured(*texts)
    frequent = {*found["content words in more than 3 dialogues"].examples}
    assert frequent == {"lamp (4)", "broke (4)", "harbour (4)"}
    assert found["dialogues that open alike"].value == 0
    found = measured(texts[0], ["my new lamp broke", "No."], ["My new lamp broke, again?", "No."])
    assert found["dialogues that open alike"].examples == (
        "my new lamp broke (test-0001, test-0002)",
    )
