"""Validators: one violation each in an otherwise valid dialogue, and arbitrary text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cradle_extras.construction.assemble import Construction, Outcome
from cradle_extras.construction.check import check_attempts, check_dialogues, contamination
from cradle_extras.construction.plan import Event, Kind, Plan, Step, plan_dialogues
from cradle_extras.construction.posts import Post, Posts
from cradle_extras.construction.validators.checks import VALIDATORS, check_draft
from cradle_extras.construction.validators.draft import TAG, draft_of, read_draft, write_line
from cradle_extras.construction.validators.duplicates import near_duplicates, triples, words_of
from cradle_extras.construction.validators.rules import Case
from cradle_lib import labels, load_corpus
from cradle_lib.corpus import Corpus

SH = labels.mask_of(["confirm_SH_ongoing"])
POST = Post("p", "", "I have been hurting myself for weeks, and nobody at home knows.", SH)
CALM = Post("q", "", "The week was long and the bus was late on every single morning.", 0)
SAID = [
    "Hello there.", "Hi, what brings you here today?", "School is a lot right now.",
    "What is the hardest part of it?", "It's the evenings.", "Tell me more, if you like.",
    "I have been hurting myself.", "Thank you for telling me.", "It's hard to say aloud.",
    "You said it, and I heard it.", "What happens next?", "We find somebody to help.",
    "I think I could try that.", "We can do it together.", "Okay, thank you so much.",
]  # fmt: skip


def text(kind: Kind = "training", tags: dict[int, str] | None = None, crisis: bool = True) -> str:
    """Returns a valid dialogue; ``tags`` (by turn) replace its own tags."""
    own = {3: "alert_ongoing", 7: "confirm_SH_ongoing"} if crisis else {}
    tags = (own if kind == "training" else {}) if tags is None else tags
    said = [line if crisis or n != 6 else "I am so tired of it." for n, line in enumerate(SAID)]
    return "\n".join(
        f"{('User', 'Listener')[n % 2]}: {line}" + (f" TAG: {tags[n + 1]}" if n + 1 in tags else "")
        for n, line in enumerate(said[: 15 if kind == "training" else 13])
    )


# A turn with a list, in place of the last two turns: the list is a part of the turn.
LISTED = "\n".join([*text().split("\n")[:-2], *("- one", "- two", "- three")])


def found(written: str, kind: Kind = "training", post: Post | None = POST) -> set[str]:
    steps = (Step("confirm", (Event("SH", "ongoing"),)),) if post is None or post.mask else ()
    plan = Plan("p", kind, "S1", "early", "", steps, (0,) * len(steps), post="p")
    return {f.validator for f in check_draft(Case(read_draft(written), kind, plan, post))}


def test_a_valid_dialogue_passes_all_validators() -> None:
    assert found(text()) == set()
    assert found(text("annotated"), "annotated") == set()
    assert found(text(crisis=False), post=CALM) == set()


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("", {"no dialogue lines"}),
        (f"Here is the dialogue:\n\n{text()}", {"text outside the dialogue"}),
        (f"{text()}\nTherapist: Goodbye.", {"other speakers"}),
        (text().rsplit("\n", 1)[0], {"too few turns"}),
        (f"{text()}\nListener: Take care.", {"too many turns"}),
        (
            "Listener: Hello.\n" + text(),
            {"too many turns", "turns do not alternate", "confirm in another phase"},
        ),
        (text().replace(" TAG: alert", " tag: alert"), {"tag syntax"}),
        (text(tags={7: "confirm_SH_soon"}), {"unknown labels", "confirms differ from plan"}),
        (text(tags={6: "alert_ongoing", 7: "confirm_SH_ongoing"}), {"tags on other lines"}),
        (LISTED, {"too few turns", "too many turns"}),
        (text().replace("Hello there.", "Hello there.\n- one\n- two"), {"too many turns"}),
        (
            LISTED.replace("- one", "- one TAG: confirm_SH_ongoing"),
            {"too few turns", "too many turns", "tags on other lines", "confirms on several turns"},
        ),
        (text().replace("Hello there.", ""), {"turns without words"}),
        (text().replace("Hello there.", "… -"), {"turns without words"}),
        (text().replace("Hello there.", "👍"), set()),
        (text().replace("Hello there.", "Now [confirm_SH_ongoing]."), {"tag syntax"}),
        (text().replace("Hello there.", "MODEL_TAG: none"), {"tag syntax"}),
        (text().replace("Hello there.", "It is SI_active_ongoing."), {"tag syntax"}),
        (text().replace("Hello there.", "We played tag, then a stage: a barn."), set()),
        (text(tags={}), {"confirms differ from plan"}),
        (
            text(tags={5: "confirm_SH_ongoing", 7: "confirm_SH_ongoing"}),
            {"confirms on several turns"},
        ),
        (text(tags={9: "confirm_SH_ongoing"}), {"confirm in another phase"}),
        (
            text(tags={7: "confirm_SH_ongoing", 9: "alert_ongoing"}),
            {"several alerts, or a late one"},
        ),
        (text().replace("It's the evenings.", "My boyfriend hits me."), {"crisis not in the post"}),
        (text().replace("Hello there.", "I think I could try that."), {"repeated lines"}),
        (text().replace("Hello there.", "I saw it on reddit."), {"forbidden detail"}),
        (
            text().replace("Hello there.", "I thought of stepping into traffic."),
            {"forbidden detail"},
        ),
    ],
)
def test_each_violation_is_found_and_named(written: str, names: set[str]) -> None:
    assert found(written) == names


@pytest.mark.parametrize(
    "said",
    [
        "I'm at x@y.org.", "I live at 12 Long Oak Street.", "Call 555 123 4567.",
        "I am u/somebody1.", "See www.example.org.", "My brother is called by Robert.",
        "I saw Dr. Okafor.", "A man called Peter came.", "I told Émile.", "It was O'Brien.",
        "It is oh seven double one two three four five.", "I live in SW1A 1AA.",
        "Look at my page dot com.",
    ],
)  # fmt: skip
def test_identifying_details_are_found(said: str) -> None:
    assert found(text().replace("Hello there.", said)) == {"identifying detail"}


@pytest.mark.parametrize(
    "said",
    [
        "My Aunt and my Grandma came.", "I read the Bible at Halloween.", "It was in Maths.",
        "I have a dog called Bean.", "I ate it with a knife and fork.", "One, two, three, four.",
        "I like the bridge of the song.", "My blood pressure is fine.", "I read on my tablet.",
        "I was stuck in traffic.", "Then she hung up.",
    ],
)  # fmt: skip
def test_harmless_words_are_no_details(said: str) -> None:
    assert found(text().replace("Hello there.", said)) == set()


def test_rules_of_posts_without_a_crisis() -> None:
    one = text(tags={7: "confirm_SH_ongoing"}, crisis=False)
    assert found(one, post=CALM) == {"confirm without a crisis"}
    hint = text(tags={3: "alert_ongoing"}, crisis=False)
    assert found(hint, post=CALM) == {"alert without a crisis"}
    assert found(text("annotated", {3: "alert_ongoing"}), "annotated") == {"tags before annotation"}


def test_a_post_that_is_cut_into_lines_is_a_copy() -> None:
    long = "I went to the lake with my sister and we sat there for hours until it grew dark"
    post, words, lines = Post("q", "", long, 0), long.split(), text(crisis=False).split("\n")
    for n in range(0, 15, 2):
        lines[n] = f"User: {' '.join(words[n : n + 8])}"
    assert "text copied from the post" in found("\n".join(lines), post=post)
    assert "text copied from the post" not in found(text(crisis=False), post=post)


@given(st.text(alphabet=st.sampled_from("UserListn:TAG; confirm_SH_ongoing\n-`*1"), max_size=200))
def test_any_text_can_be_read_and_checked(written: str) -> None:
    draft = read_draft(written)
    for kind in ("training", "annotated"):
        check_draft(Case(draft, kind, None, None))
    # Writing and reading again gives the same labels.
    again = read_draft("\n".join(map(write_line, draft.lines)))
    if not any(TAG.search(line.text) or line.unknown for line in draft.lines):
        assert [line.mask for line in again.lines] == [line.mask for line in draft.lines]


@pytest.mark.parametrize(("split", "kind"), [("dev", "training"), ("test", "annotated")])
def test_the_surrogate_is_accepted_and_its_flags_are_right(split: str, kind: Kind) -> None:
    corpus = load_corpus("surrogate", split)
    table = check_dialogues(corpus, kind).set_index("validator")
    assert table.loc[table["severity"] == "reject", "found"].sum() == 0
    limit = {"training": 15, "annotated": 13}[kind]
    long = sum(len(dialogue.turns) > limit for dialogue in corpus)
    assert table.loc["too many turns", "found"] == long
    # Dialogues with an alert and no confirm: their post had no crisis label.
    lone = sum(
        bool(d.mask & labels.ALERT_MASK) and not d.mask & labels.CONFIRM_MASK for d in corpus
    )
    assert table.loc["alert without a crisis", "found"] == (lone if kind == "training" else 0)
    assert len(table) == len(VALIDATORS) + 1


def compare_all_pairs(
    texts: list[tuple[str, str]], parts: Callable[[str], set[str]], threshold: float
) -> list[tuple[str, str]]:
    """Compares each text with every earlier one that is not a duplicate itself."""
    kept: list[tuple[str, set[str]]] = []
    pairs = []
    for name, content in texts:
        own = parts(content)
        shares = [(len(own & other) / len(own | other), n) for n, (_, other) in enumerate(kept)]
        best, place = max(shares, default=(0.0, -1))
        if best >= threshold:
            pairs.append((name, kept[place][0]))
        else:
            kept.append((name, own))
    return pairs


@pytest.mark.parametrize(
    ("parts", "threshold"), [(triples, 0.8), (lambda text: set(words_of(text)), 0.7)]
)
def test_near_duplicates_equal_those_of_comparing_all_pairs(
    parts: Callable[[str], set[str]], threshold: float
) -> None:
    texts = [draft_of(d).text for d in load_corpus("surrogate", "dev").dialogues[:12]]
    # Copies with different shares of changed words.
    for base, change in itertools.product(range(6), range(1, 30, 4)):
        words = texts[base].split()
        step = max(len(words) // change, 1)
        texts.append(" ".join("otherwise" if n % step == 0 else w for n, w in enumerate(words)))
    named = [(str(n), content) for n, content in enumerate(texts)]
    expected = compare_all_pairs(named, parts, threshold)
    assert 10 < len(expected) < 50
    found = near_duplicates(named, parts=parts, threshold=threshold)
    assert [(name, earlier) for name, earlier, _ in found] == expected


def test_attempts_without_a_line_are_no_duplicates_of_each_other() -> None:
    posts = Posts("calm", tuple(Post(f"c{n}", "", f"Number {n}.", 0) for n in range(3)))
    nothing = check_draft(Case(read_draft("No."), "training", None, None))
    made = Construction(
        "none",
        posts,
        tuple(Outcome(plan, None, [("No.", nothing)]) for plan in plan_dialogues(posts)),
    )
    table = check_attempts(made).set_index("validator")
    assert table.loc["no dialogue lines", "found"] == 3
    assert table.loc["near-duplicate", "found"] == 0


def test_contamination_is_counted_by_dialogue_and_by_turn() -> None:
    train = load_corpus("surrogate", "train")
    test = load_corpus("surrogate").subset(range(200), "two hundred")
    some = test.subset(range(20), "some")
    rows = contamination(some, some).set_index("what")
    assert (rows["found"] == rows["number"]).all()
    assert rows["number"]["dialogues"] == 20

    # An independent count that compares all pairs, word by word.
    few = train.subset(range(300), "few")

    def words_of(corpus: Corpus) -> list[tuple[list[str], int]]:
        turns = [(d.utterance(turn), turn.mask) for d in corpus for turn in d.user_turns]
        return [(re.findall(r"[\w']+", text.lower()), mask) for text, mask in turns]

    known = [words for words, _ in words_of(few)]
    turns = [(words, mask) for words, mask in words_of(test) if len(words) > 4]
    rows = contamination(few, test).set_index("what")
    assert rows["number"]["user turns"] == len(turns)
    assert rows["found"]["user turns"] == sum(words in known for words, _ in turns)
    labelled = [words for words, mask in turns if mask]
    assert rows["found"]["user turns with a label"] == sum(words in known for words in labelled)
