"""Tables of a corpus, published values beside what was counted: Tables 2, 3, 7 and 12."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cradle_lib.corpus.statistics import Statistics
from cradle_lib.labels import LABELS
from cradle_lib.published import published, published_label_counts, published_table
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.published import published_cell
from cradle_lib.reporting.tables import (
    DASH,
    MISSING,
    MISSING_NOTE,
    Cell,
    Column,
    Row,
    Table,
    count,
    decimal,
    text,
)

_SIZES: Final = (
    ("Dialogues", "corpus.dialogues"),
    ("Turns", "corpus.turns"),
    ("User turns, on which a model is asked", "corpus.user_turns"),
    ("Turns in a dialogue, mean", "corpus.mean_turns"),
    ("Labels", "corpus.labels"),
    ("Labels that are ongoing (%)", "corpus.ongoing_share"),
    ("Dialogues with an alert", "corpus.dialogues_with_alert"),
    ("Dialogues with a confirm", "corpus.dialogues_with_confirm"),
    ("Dialogues with both", "corpus.dialogues_with_both"),
    ("Dialogues with neither", "corpus.dialogues_with_neither"),
    ("Different labels in a dialogue", "corpus.labels_per_dialogue"),
    ("Different alerts in a dialogue", "corpus.alerts_per_dialogue"),
    ("Different confirms in a dialogue", "corpus.confirms_per_dialogue"),
)


def size_table(statistics: Statistics, corpus: str) -> Table:
    """Makes Table 2: sizes, presence of alerts and confirms, and density.

    Args:
        statistics: What was counted.
        corpus: Name of the corpus.

    Returns:
        One row for each quantity. Densities are means ± standard deviations.
    """
    found = statistics.by_key()
    rows = []
    for title, key in _SIZES:
        if key in found:
            here, stated, source = _number(found[key], key), published_cell(key), key
        else:
            source = f"{key}_mean"
            here = _spread(found[source], found[f"{key}_sd"])
            stated = _spread(published(source), published(f"{key}_sd"))
        rows.append(Row((text(title), here, stated, text(published_table()[source].where))))
    return Table(
        f"Size of {corpus}, and presence and density of its labels (the paper's Table 2).",
        (
            Column("Quantity", "text"),
            Column("This corpus"),
            Column("Published", "published"),
            Column("Where", "text"),
        ),
        tuple(rows),
        ("Densities count different labels of a dialogue: mean ± standard deviation.",),
    )


def label_table(statistics: Statistics, corpus: str) -> Table:
    """Makes Table 3: occurrences of each label.

    Args:
        statistics: What was counted.
        corpus: Name of the corpus.

    Returns:
        One row for each label, and one for their sum.
    """
    stated = published_label_counts()
    rows = [
        Row(
            (
                text(label),
                count(statistics.occurrences[label]),
                decimal(statistics.percent[label], 1),
                count(statistics.user_occurrences[label]),
                count(stated[label]),
            )
        )
        for label in LABELS
    ]
    rows.append(
        Row(
            (
                text("all labels"),
                count(statistics.labels),
                decimal(sum(statistics.percent.values()), 1),
                count(sum(statistics.user_occurrences.values())),
                count(sum(stated.values())),
            )
        )
    )
    return Table(
        f"How often each label occurs in {corpus} (the paper's Table 3).",
        (
            Column("Label", "text"),
            Column("All turns"),
            Column("Share (%)"),
            Column("User turns"),
            Column("Real test split, user turns", "published"),
        ),
        tuple(rows),
        (
            "The last column was counted on the public release, independently of the paper, "
            "whose own table is not in our copy of its text.",
        ),
    )


def length_table(statistics: Statistics, corpus: str) -> Table:
    """Makes Table 7: dialogues by their number of turns, and the mean."""
    rows = [
        Row(
            (
                text(f"{length} turns"),
                count(dialogues),
                decimal(statistics.share(dialogues), 1),
                Cell(MISSING),
            )
        )
        for length, dialogues in statistics.lengths.items()
    ]
    mean = statistics.turns_per_dialogue.mean
    rows.append(
        Row(
            (
                text("mean number of turns"),
                decimal(mean),
                Cell(MISSING),
                published_cell("corpus.mean_turns"),
            )
        )
    )
    return Table(
        f"How long the dialogues of {corpus} are (the paper's Table 7).",
        (
            Column("Length", "text"),
            Column("Dialogues"),
            Column("Share (%)"),
            Column("Published", "published"),
        ),
        tuple(rows),
        (MISSING_NOTE,),
    )


def training_table(splits: Mapping[str, Statistics], corpus: str) -> Table | Notice:
    """Makes Table 12: the train and dev splits.

    Args:
        splits: Statistics by ``train`` and ``dev``.
        corpus: Name of the corpus.

    Returns:
        One row for each quantity and label; two columns for each split. A notice without
        splits.
    """
    if not splits:
        return Notice("This corpus has no train split and no dev split to count.")

    def row(title: str, cell: Callable[[Statistics], Cell], stated: Callable[[str], Cell]) -> Row:
        cells = [made for name, s in splits.items() for made in (cell(s), stated(name))]
        return Row((text(title), *cells))

    rows = [
        row("Dialogues", lambda s: count(s.dialogues), lambda n: published_cell(f"{n}.dialogues")),
        row("Turns", lambda s: count(s.turns), lambda n: published_cell(f"{n}.turns")),
        row("Labels", lambda s: count(s.labels), _unstated),
        row(
            "Different labels in a dialogue, mean",
            lambda s: decimal(s.labels_per_dialogue.mean),
            lambda _: _range("train.unique_labels_per_dialogue"),
        ),
        row(
            "Dialogues with both stages (%)", lambda s: decimal(s.share(s.with_both), 1), _unstated
        ),
        row(
            "Dialogues without a label (%)",
            lambda s: decimal(s.share(s.with_neither), 1),
            lambda _: _range("train.no_label_share"),
        ),
    ]
    for label in LABELS:
        rows.append(
            row(
                f"{label} (% of labels)",
                lambda s, label=label: decimal(s.percent[label], 1),  # type: ignore[misc]
                lambda _, label=label: published_cell(f"train.{label}_share"),  # type: ignore[misc]
            )
        )
    titles = [
        column
        for name in splits
        for column in (Column(name), Column(f"Published ({name})", "published"))
    ]
    return Table(
        f"The splits of {corpus} for training and development (the paper's Table 12).",
        (Column("Quantity", "text"), *titles),
        tuple(rows),
        (MISSING_NOTE, "Ranges and shares are published for both splits together."),
    )


def _number(value: float, key: str) -> Cell:
    if published_table()[key].unit in ("percent", "turns"):
        return decimal(value, 1 if published_table()[key].unit == "percent" else 2)
    return count(int(value))


def _spread(mean: float | None, sd: float | None) -> Cell:
    if mean is None or sd is None:
        return Cell(MISSING)
    return Cell(f"{mean:.2f} ± {sd:.2f}", value=mean)


def _range(key: str) -> Cell:
    low, high = published_cell(f"{key}_low"), published_cell(f"{key}_high")
    return Cell(f"{low.text}{DASH}{high.text}")


def _unstated(_: str) -> Cell:
    return Cell(MISSING)
