"""Corpora: the only room that reads or writes dialogues."""

from cradle_lib.corpus.check import Check, check_counts, find_quirks, is_test_split
from cradle_lib.corpus.dialogue import Corpus, Dialogue, Turn
from cradle_lib.corpus.hub import fetch_release
from cradle_lib.corpus.load import load_corpus
from cradle_lib.corpus.release import read_release
from cradle_lib.corpus.statistics import corpus_statistics, dialogue_frame, label_frame

__all__ = [
    "Check",
    "Corpus",
    "Dialogue",
    "Turn",
    "check_counts",
    "corpus_statistics",
    "dialogue_frame",
    "fetch_release",
    "find_quirks",
    "is_test_split",
    "label_frame",
    "load_corpus",
    "read_release",
]
