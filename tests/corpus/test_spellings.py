"""Spellings of labels in users' files; the expected labels are written out by hand."""

from __future__ import annotations

import pytest

from cradle_lib.corpus.spellings import parse, spelled
from cradle_lib.errors import CorpusError
from cradle_lib.labels import LABELS, format_mask


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("Alert: ongoing", "alert_ongoing"),
        ("alertOngoing", "alert_ongoing"),
        ("SH_p", "confirm_SH_past"),
        ("self-harm (past)\nDV: ongoing", "confirm_SH_past; confirm_DV_ongoing"),
        ("confirm_suicideideation_active_past", "confirm_SI_active_past"),
        ("childabuse_endangerment_ongoing", "confirm_CA_ongoing"),
        ("rape_past | sexualharassment_ongoing", "confirm_SHA_ongoing; confirm_RA_past"),
        ("['Alert past', 'domestic violence, past']", None),
        ("['alert_past' 'SH_past']", "alert_past; confirm_SH_past"),
        ("{alert_past,'SH\u2013past'}", "alert_past; confirm_SH_past"),
        ("no_crisis", "none"),
        ("None", "none"),
        # Incomplete, doubted, negated or unknown labels are never guessed.
        ("confirm_SH", None),
        ("SI past", None),
        ("no self-harm past", None),
        ("alert_ongoing; joy", None),
        ("alert_ongoing_past", None),
        *((cell, None) for cell in ("SH_past?", "SH_past\uff1f", "SH_past*", "alert_past; ?")),
        *((cell, None) for cell in ("~SH_past", "!SH_past", "\u00acSH_past")),
        *((cell, None) for cell in ("none; SH_past", "SH_past, None", "no crisis; SH_past")),
    ],
)
def test_spellings_are_read_or_refused(cell: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(CorpusError, match="unknown label"):
            parse(cell)
    else:
        assert format_mask(parse(cell)) == expected


def test_every_label_is_its_own_spelling_without_confirm_and_with_a_short_state() -> None:
    for label in LABELS:
        short = label.removeprefix("confirm_").replace("ongoing", "o").replace("past", "p")
        assert [spelled(label), spelled(short)] == [label, label]
