"""Writes the card of the tuned model that ships, with the scores of its shipped runs.

    python -m tools.model_card

Run it after `cradle train --base smollm2-135m --recipe processor`, once the adapter lies in
data/adapters and its journals in data/runs.
"""

from __future__ import annotations

from typing import Final

from cradle_extras.training.card import write_card
from cradle_extras.training.record import read_training
from cradle_lib import load_corpus, paths
from cradle_lib.detection.predictions import Predictions, load_predictions

NAME: Final = "smollm2-135m-tuned"
ADAPTER: Final = paths.DATA / "adapters" / NAME
_SYSTEMS: Final = (NAME, f"{NAME}-constrained")


def shipped_runs() -> list[Predictions]:
    """Loads the runs of the tuned model that ship: each split, freely and constrained."""
    runs = []
    for split in ("test", "dev"):
        corpus = load_corpus("surrogate", split)
        for system in _SYSTEMS:
            journal = paths.SHIPPED_RUNS / corpus.name / f"{system}.jsonl"
            if journal.is_file():
                runs.append(load_predictions(journal, corpus, partial=True))
    return runs


if __name__ == "__main__":
    write_card(ADAPTER, read_training(ADAPTER), shipped_runs(), NAME)
