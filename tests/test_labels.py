"""The label set: masks, parts of a label, and the text form."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cradle_lib import labels
from cradle_lib.errors import CorpusError


def test_stages_and_temporal_states_each_partition_the_labels() -> None:
    for one, other in (
        (labels.ALERT_MASK, labels.CONFIRM_MASK),
        (labels.ONGOING_MASK, labels.PAST_MASK),
    ):
        assert one & other == 0
        assert one | other == labels.ALL_MASK == 0xFFFF
    assert labels.ALERT_MASK.bit_count() == 2
    assert labels.PAST_MASK.bit_count() == 8


def test_stage_type_and_state_of_a_label() -> None:
    assert labels.stage("alert_past") == "alert"
    assert labels.crisis_type("alert_past") is None
    assert labels.crisis_type("confirm_SI_active_ongoing") == "SI_active"
    assert labels.crisis_type("confirm_SHA_past") == "SHA"
    assert labels.temporal("confirm_SHA_past") == "past"
    assert labels.short("confirm_SHA_past") == "SHA_past"
    assert labels.short("alert_past") == "alert_past"


@given(
    st.lists(st.sampled_from(labels.LABELS), min_size=1),
    st.sampled_from([";", "; ", ",", " | ", ",  "]),
    st.booleans(),
)
def test_separators_and_case_do_not_matter(names: list[str], separator: str, upper: bool) -> None:
    cell = separator.join(names)
    assert labels.parse(cell.upper() if upper else cell) == labels.mask_of(names)


@given(st.lists(st.sampled_from(labels.LABELS)))
def test_json_and_python_lists_are_parsed(names: list[str]) -> None:
    expected = labels.mask_of(names)
    assert labels.parse(json.dumps(names)) == expected
    assert labels.parse(repr(names)) == expected


@given(st.integers(0, labels.ALL_MASK))
def test_a_mask_survives_writing_and_parsing(mask: int) -> None:
    names = labels.labels_of(mask)
    assert labels.mask_of(names) == mask
    assert len(set(names)) == mask.bit_count()
    assert labels.parse(labels.format_mask(mask)) == mask


@pytest.mark.parametrize("cell", ["", "none", "None", "NULL", "nan", "[]", "['none']", " ; "])
def test_cells_without_a_label(cell: str) -> None:
    assert labels.parse(cell) == 0


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("confirm_SH_ongoin", "confirm_SH_ongoing"),
        ("alert-past", "alert_past"),
        ("confirm_SH_past; confirm_SHX_past", "confirm_SH"),
        ("[1, 2]", "unknown label '1'"),
        ("none; alert_past", "unknown label 'none'.*`none` alone"),
        ("['alert_past', 'None']", "unknown label 'None'"),
    ],
)
def test_a_wrong_cell_is_an_error_that_says_what_is_wrong(cell: str, hint: str) -> None:
    with pytest.raises(CorpusError, match=hint):
        labels.parse(cell)


@given(st.text(max_size=40))
def test_any_cell_is_parsed_or_refused(cell: str) -> None:
    try:
        mask = labels.parse(cell)
    except CorpusError:
        return
    assert 0 <= mask <= labels.ALL_MASK
