"""The baselines: the lexicon, TF-IDF, and the first-turn prior."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.corpus.release import write_release
from cradle_lib.detection import Outcome, load_predictions, load_registry, read_journal
from cradle_lib.detection.baselines.keyword import Keyword
from cradle_lib.detection.baselines.tfidf import train_split
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import CorpusError, EngineError
from cradle_lib.labels import BITS, LABELS, format_mask, labels_of

from ..dialogues import make_corpus


@pytest.fixture(scope="module")
def keyword() -> Keyword:
    return Keyword()


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("I have been hurting myself again.", "confirm_SH_ongoing"),
        ("I used to hurt myself, and now it started again.", "confirm_SH_ongoing"),
        ("I've made a plan to end my life and I want to die.", "confirm_SI_active_ongoing"),
        ("I was raped.", "confirm_RA_past"),
        ("I don\u2019t feel safe at home.", "alert_ongoing"),
        ("My friend says it's nothing but I want to die", "confirm_SI_passive_ongoing"),
        # The temporal state is that of the whole text; ongoing prevails.
        (
            "I was groped back then, but my partner hits me now.",
            "confirm_DV_ongoing; confirm_SHA_ongoing",
        ),
        # Idioms, negations, other people and hypotheticals.
        ("This exam is killing me.", "none"),
        ("I'm not suicidal, just tired.", "none"),
        ("My friend told me that she wants to die.", "none"),
        ("If I wanted to die I would say so.", "none"),
    ],
)
def test_disclosures_are_found_and_idioms_are_not(keyword: Keyword, text: str, labels: str) -> None:
    assert format_mask(keyword.find(text)) == labels


def test_an_event_is_predicted_once_and_a_confirm_ends_the_alerts(tmp_path: Path) -> None:
    corpus = make_corpus(
        [
            [
                ("User", "I don't feel safe at home.", "none"),
                ("User", "I don't feel safe at home, I said.", "none"),
                ("User", "My husband hit me.", "none"),
                ("User", "My husband hit me and I can't go on.", "none"),
                ("User", "I'm scared to go home.", "none"),
            ]
        ]
    )
    path = run(load_registry()["keyword"], corpus, out=tmp_path)
    answers = load_predictions(path, corpus).answers
    assert answers == ("alert_ongoing", "none", "confirm_DV_ongoing", "none", "none")


def test_a_long_sentence_is_read_in_pieces(keyword: Keyword) -> None:
    disclosure = "my husband hit me"
    # A disclosure after thousands of negations: quadratic time would be minutes.
    denied = "i do not cut myself and " * 2_000
    assert keyword.find(f"{denied}{disclosure}") == BITS["confirm_DV_ongoing"]
    assert keyword.find(f"{'x ' * 3_000}{disclosure}") == BITS["confirm_DV_ongoing"]
    # A disclosure is found anywhere in a shorter sentence.
    for before in range(0, 980, 140):
        assert keyword.find(f"{'x ' * (before // 2)}{disclosure}") == BITS["confirm_DV_ongoing"]


# ---- TF-IDF -------------------------------------------------------------------------

SENTENCES = {
    "none": [
        "the bus was late",
        "we had soup",
        "my exam went well",
        "work is dull today",
        *["i feel so odd"] * 3,
    ],
    "confirm_SH_ongoing": [
        "i hurt my arm on purpose",
        "i hurt myself on purpose again",
        "i feel so odd",
    ],
    "confirm_DV_past; alert_past": ["my ex used to shove me around", "my ex used to shout"],
}


def write_split(path: Path, repeats: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    pairs = [(text, labels) for labels, texts in SENTENCES.items() for text in texts]
    dialogues = []
    for _ in range(repeats):
        rows = []
        for index in generator.permutation(len(pairs)):
            text, labels = pairs[index]
            extra = " ".join(generator.choice(["so", "and", "well", "then"], 3))
            rows.append(("User", f"{text} {extra}", labels))
        dialogues.append(rows)
    write_release(make_corpus(dialogues), path)


@pytest.fixture
def split(tmp_path: Path) -> Corpus:
    write_split(tmp_path / "train.csv", 4, seed=1)
    write_split(tmp_path / "test.csv", 2, seed=2)
    return load_corpus(str(tmp_path / "test.csv"))


def table(corpus: Corpus) -> pd.DataFrame:
    """Returns the features of each user turn: its text, earlier texts, and earlier labels."""
    rows = []
    for dialogue in corpus:
        turns = dialogue.user_turns
        for index, turn in enumerate(turns):
            before = " ".join(f"User: {t.text}" for t in turns[:index])
            tags = {label for t in turns[:index] for label in labels_of(t.mask)}
            shown = {label: int(label in tags) for label in LABELS}
            rows.append({"now": turn.text, "before": before} | shown)
    return pd.DataFrame(rows)


@pytest.mark.parametrize("name", ["tfidf", "tfidf-history"])
def test_tfidf_equals_scikit_learns_one_vs_rest(name: str, split: Corpus, tmp_path: Path) -> None:
    path = run(load_registry()[name], split, out=tmp_path, history="gold")
    predictions = load_predictions(path, split)
    train = load_corpus(str(tmp_path / "train.csv"))
    used = [bit for bit in BITS.values() if (train.gold & bit).any()]
    settings: dict[str, Any] = {"ngram_range": (1, 2), "min_df": 2, "sublinear_tf": True}
    blocks: list[Any] = [
        ("now", TfidfVectorizer(**settings), "now"),
        ("before", TfidfVectorizer(**settings), "before"),
        ("shown", "passthrough", list(LABELS)),
    ]
    blocks = blocks[:1] if name == "tfidf" else blocks
    columns = ColumnTransformer(blocks, sparse_threshold=1.0)
    oracle = OneVsRestClassifier(LogisticRegression(class_weight="balanced", max_iter=1000))
    target = np.stack([train.gold & bit > 0 for bit in used], axis=1)
    oracle.fit(columns.fit_transform(table(train)), target)
    expected = oracle.predict(columns.transform(table(split))) @ np.array(used)
    np.testing.assert_array_equal(predictions.masks, expected)
    assert predictions.masks.any()
    assert str(predictions.record.revision).startswith(f"train:{train.fingerprint} code:")


def test_baselines_learn_from_the_corpus_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_split(tmp_path / "mine.csv", 5, seed=0)
    write_split(tmp_path / "other.csv", 40, seed=1)
    corpus, surrogate = load_corpus(tmp_path / "mine.csv"), load_corpus("surrogate", "train")
    entry = load_registry()["tfidf"]
    with pytest.raises(EngineError, match="CRADLE_TRAIN=surrogate"):
        train_split(corpus)
    other = tmp_path / "other.csv"
    for name, expected in (("surrogate", surrogate), (str(other), load_corpus(other))):
        monkeypatch.setenv("CRADLE_TRAIN", name)
        assert train_split(corpus).fingerprint == expected.fingerprint
    record, _ = read_journal(run(entry, corpus, out=tmp_path))
    assert str(record.revision).startswith(f"train:{expected.fingerprint}")
    (tmp_path / "bare.csv").write_text("turn_id,text,labels\n0,User: hi,\n")
    for refused, why in (("mine", "shares dialogues with mine"), ("bare", "no gold labels")):
        monkeypatch.setenv("CRADLE_TRAIN", str(tmp_path / f"{refused}.csv"))
        with pytest.raises(CorpusError, match=why):
            train_split(corpus)


def test_a_train_split_with_too_few_words_fails_questions(tmp_path: Path) -> None:
    for part, texts in {"train": ("alpha", "beta"), "test": ("gamma", "delta", "eta")}.items():
        rows = "".join(f"0,User: {text},none\n" for text in texts)
        (tmp_path / f"{part}.csv").write_text(f"turn_id,text,labels\n{rows}")
    corpus = load_corpus(str(tmp_path / "test.csv"))
    with pytest.raises(EngineError, match=r"3 questions in a row raised .*no terms remain"):
        run(load_registry()["tfidf"], corpus, out=tmp_path)
    _, [*stored] = read_journal(tmp_path / corpus.name / "tfidf.jsonl")
    assert {prediction.outcome for prediction in stored} == {Outcome.FAILED}


@pytest.mark.parametrize("name", ["tfidf", "tfidf-history"])
def test_a_train_split_without_labels_predicts_none(name: str, tmp_path: Path) -> None:
    for part in ("train", "test"):
        rows = "0,User: alpha beta,none\n1,Listener: gamma,\n2,User: beta alpha,\n" * 2
        (tmp_path / f"{part}.csv").write_text(f"turn_id,text,labels\n{rows}")
    corpus = load_corpus(str(tmp_path / "test.csv"))
    stored = load_predictions(run(load_registry()[name], corpus, out=tmp_path), corpus)
    assert stored.masks.tolist() == [0] * 4
    assert stored.ok.all()


def test_the_first_turn_prior_predicts_an_alert_for_each_first_user_turn(
    corpus: Corpus, tmp_path: Path
) -> None:
    path = run(load_registry()["first-turn-prior"], corpus, out=tmp_path, history="none")
    frame = load_predictions(path, corpus).to_frame()
    expected = np.where(frame["position"] == 1, "alert_ongoing", "none")
    assert frame["predicted"].tolist() == expected.tolist()
