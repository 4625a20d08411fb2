"""Statistics of a corpus (Tables 1 to 3, 7 and 12 of the paper).

Conventions:
    *Occurrences* count a label once for each row that has it, on all rows (Tables 3 and 12: 713 in
    the test split), or on user turns only (711 there). *Density* counts the distinct labels of a
    dialogue, on all of its rows, as Table 12 says and the paper's averages imply. A dialogue's
    *length* is its number of rows, continuations included.

    Standard deviations divide by the number of dialogues (``ddof=0``): they describe this corpus
    and do not estimate a population. The paper does not say which it used; at 600 dialogues both
    agree in the two decimals that it prints.

    The release has no column for the scenario or the reveal timing of a dialogue. The surrogate
    has both, and other corpora may have them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from cradle_lib.arguments import checked
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.errors import CorpusError
from cradle_lib.labels import (
    ALERT_MASK,
    CONFIRM_MASK,
    CRISIS_TYPES,
    LABELS,
    crisis_type,
    labels_of,
    stage,
    temporal,
)
from cradle_lib.published import published_table


@checked
def dialogue_frame(corpus: Corpus) -> pd.DataFrame:
    """Describes each dialogue of a corpus.

    Args:
        corpus: Any corpus.

    Returns:
        One row for each dialogue.

        - ``dialogue`` (str): its id.
        - ``turns`` (int): its rows; ``user_turns`` (int): its user turns, on which models are
          asked.
        - ``labels``, ``alerts``, ``confirms`` (Int64): distinct labels on any of its rows, of 16, 2
          and 14; missing without gold labels.
        - ``scenario`` (categorical): the paper's scenarios in their order, then the corpus' own;
          ``timing`` (categorical): ``early``, ``mid``, ``late``, then the corpus' own. Missing if
          the corpus does not have them.
    """
    masks = np.array([dialogue.mask for dialogue in corpus], dtype=np.uint16)
    stages = {"labels": 0xFFFF, "alerts": ALERT_MASK, "confirms": CONFIRM_MASK}
    frame = pd.DataFrame(
        {
            "dialogue": pd.Series([dialogue.id for dialogue in corpus], dtype=str),
            "turns": np.array([len(dialogue.turns) for dialogue in corpus], dtype=np.int64),
            "user_turns": np.array([len(d.user_turns) for d in corpus], dtype=np.int64),
        }
        | {k: np.bitwise_count(masks & np.uint16(m)).astype(np.int64) for k, m in stages.items()}
    )
    labelled = np.array([dialogue.labelled for dialogue in corpus], dtype=bool)
    for name in stages:
        frame[name] = frame[name].astype("Int64").where(labelled)
    scenarios = [key.removeprefix("scenario.") for key in published_table() if "scenario." in key]
    for name, usual in (("scenario", scenarios), ("timing", ["early", "mid", "late"])):
        known = pd.Series(corpus.meta.get(name), frame.index, dtype=object).replace("", None)
        own = sorted({*known.dropna()} - {*usual})
        frame[name] = pd.Categorical(known, [*usual, *own])
    return frame


@checked
def label_frame(corpus: Corpus) -> pd.DataFrame:
    """Lists every occurrence of a label in a corpus.

    Args:
        corpus: Any corpus.

    Returns:
        One row for each label on each row of the corpus, in its order.

        - ``dialogue`` (str): the dialogue's id; ``turn`` (int): ``turn_id``, from 0.
        - ``position`` (Int64): number of the user turn in the dialogue, from 1; missing for labels
          outside user turns.
        - ``label`` (categorical): one of the sixteen, in their order.
        - ``stage`` (categorical): ``alert`` or ``confirm``.
        - ``kind`` (categorical): ``alert``, or the crisis type in words.
        - ``temporal`` (categorical): ``ongoing`` or ``past``.
        - ``scenario``, ``timing`` (categorical): as in :func:`dialogue_frame`.
    """
    turns = corpus.to_frame()
    turns["label"] = pd.Series([labels_of(int(mask)) for mask in turns["mask"]], dtype=object)
    about = dialogue_frame(corpus)[["dialogue", "scenario", "timing"]]
    turns = turns.drop(columns=["scenario", "timing"], errors="ignore").merge(about)
    rows = turns.explode("label").dropna(subset="label").reset_index(drop=True)
    parts = pd.DataFrame(
        [(label, stage(label), _kind(label), temporal(label)) for label in LABELS],
        columns=["label", "stage", "kind", "temporal"],
    )
    given = rows[["label"]].astype(str).merge(parts, how="left", on="label")
    for name in parts:
        rows[name] = pd.Categorical(given[name], parts[name].unique())
    return rows[["dialogue", "turn", "position", *parts, "scenario", "timing"]]


def _kind(label: str) -> str:
    return CRISIS_TYPES.get(crisis_type(label) or "", "alert")


@checked
def corpus_statistics(corpus: Corpus) -> pd.DataFrame:
    """Calculates the statistics of a corpus.

    Args:
        corpus: Any corpus with at least one dialogue.

    Returns:
        One row for each quantity.

        - ``corpus`` (str): the corpus' name.
        - ``quantity`` (str): key of the quantity, as in the published values:
          ``dialogues``, ``labels_per_dialogue_mean``, and so on; then for each label
          ``{label}_share``.
        - ``meaning`` (str): the same in words, for a page.
        - ``value`` (float): in its unit; a share is 0 to 1. Shares of labels are NaN if there are
          none. Numbers about labels count dialogues with gold labels, and are NaN without them.
        - ``unit`` (str): ``count``, ``number`` or ``share``.

    Raises:
        CorpusError: If there is no dialogue, since no mean is defined then.
    """
    if not len(corpus):
        raise CorpusError(f"{corpus.name} has no dialogues, expected at least one to count")
    dialogues, occurrences = dialogue_frame(corpus), label_frame(corpus)
    alert, confirm = dialogues["alerts"] > 0, dialogues["confirms"] > 0
    both = alert & confirm
    # A total of dialogues is missing if none of them has gold labels.
    total = partial(pd.Series.sum, min_count=1)
    past, asked = occurrences["temporal"] == "past", dialogues["user_turns"].sum()
    rows: list[tuple[str, str, float, str]] = [
        ("dialogues", "Dialogues", len(dialogues), "count"),
        ("turns", "Turns", dialogues["turns"].sum(), "count"),
        ("user_turns", "User turns, on which a model is asked", asked, "count"),
        ("mean_turns", "Turns per dialogue, mean", dialogues["turns"].mean(), "number"),
        ("labels", "Labels", len(occurrences) if len(corpus.labelled) else np.nan, "count"),
        ("ongoing_share", "Labels that are ongoing (%)", 1 - past.mean(), "share"),
        ("dialogues_with_alert", "Dialogues with an alert", total(alert), "count"),
        ("dialogues_with_confirm", "Dialogues with a confirm", total(confirm), "count"),
        ("dialogues_with_both", "Dialogues with an alert and a confirm", total(both), "count"),
        ("dialogues_with_neither", "Dialogues with neither", total(~alert & ~confirm), "count"),
        ("both_share", "Dialogues with an alert and a confirm (%)", both.mean(), "share"),
        ("no_label_share", "Dialogues without a label (%)", (~alert & ~confirm).mean(), "share"),
    ]
    for name in ("labels", "alerts", "confirms"):
        density = dialogues[name]
        key, meaning = f"{name}_per_dialogue", f"Distinct {name} per dialogue"
        rows += [
            (f"{key}_mean", f"{meaning}, mean", density.mean(), "number"),
            (f"{key}_sd", f"{meaning}, standard deviation", density.std(ddof=0), "number"),
        ]
    shares = occurrences["label"].value_counts(sort=False) / (len(occurrences) or np.nan)
    rows += [(f"{k}_share", f"{k} (% of labels)", v, "share") for k, v in shares.items()]
    frame = pd.DataFrame(rows, columns=["quantity", "meaning", "value", "unit"])
    frame.insert(0, "corpus", corpus.name)
    return frame.astype({"value": "Float64"}).astype({"value": float})
