from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.signature import Signature, shared

ONE = Signature(
    level="turn",
    labels=16,
    history="self",
    decoding="free",
    empty_jaccard=1.0,
    zero_division=0.0,
    orphans="ignore",
    unparsed="miss",
    macro_f1="mean",
    corpus="ab12cd34ef56",
    dialogues=600,
    draws=10_000,
    seed=0,
    version="0.1.0",
)
LINE = (
    "cradle|lvl:turn|labels:16|hist:self|dec:free|empty:1|zd:0|orphans:ignore|unparsed:miss"
    "|macro:mean|corpus:ab12cd34ef56|n:600|boot:10000@0|v0.1.0"
)

signatures = st.builds(
    Signature,
    level=st.sampled_from(["turn", "dialogue", "confirm"]),
    labels=st.sampled_from([14, 16]),
    history=st.sampled_from(["self", "gold", "none"]),
    decoding=st.sampled_from(["free", "constrained", "constrained+free"]),
    empty_jaccard=st.floats(0, 1),
    zero_division=st.floats(0, 1),
    orphans=st.sampled_from(["ignore", "attach", "count"]),
    unparsed=st.sampled_from(["miss", "none", "exclude"]),
    macro_f1=st.sampled_from(["mean", "harmonic"]),
    corpus=st.text("0123456789abcdef", min_size=12, max_size=12),
    dialogues=st.integers(1, 10**7),
    draws=st.integers(0, 10**6),
    seed=st.integers(0, 2**63),
    version=st.sampled_from(["0.1.0", "1.2.0rc1", "0+unknown", "0.1.dev3+g12ab"]),
)


def test_the_short_form_is_one_documented_line() -> None:
    assert str(ONE) == LINE
    assert Signature.parse(LINE) == ONE


@settings(deadline=None, max_examples=100)
@given(signatures)
def test_the_short_form_loses_nothing(signature: Signature) -> None:
    assert Signature.parse(str(signature)) == signature
    assert " " not in str(signature)


@settings(deadline=None, max_examples=50)
@given(signatures, signatures)
def test_equal_lines_mean_equal_settings(one: Signature, other: Signature) -> None:
    differences = one.differences(other)
    # How answers were decoded is a property of the system, and no reason to refuse.
    conditions = replace(other, decoding=one.decoding)
    assert (str(one) == str(conditions)) == (differences == ())
    assert one.differences(other, allowed=differences) == ()


@pytest.mark.parametrize("field", [field.name for field in fields(Signature)])
def test_every_part_shows_in_both_forms(field: str) -> None:
    value = getattr(ONE, field)
    other = replace(ONE, **{field: "changed" if isinstance(value, str) else value + 7})
    assert str(other) != str(ONE)
    assert other.long() != ONE.long()
    assert ONE.differences(other) == (() if field == "decoding" else (field,))


def test_a_shared_signature_names_both_kinds_of_decoding_and_what_it_is_about() -> None:
    other = replace(ONE, decoding="constrained", history="gold")
    assert shared([ONE, other], about=("history",)) == replace(
        ONE, decoding="constrained+free", history="gold+self"
    )
    assert shared([ONE, ONE]) == ONE
    # Numbers are not joined, and what the comparison is not about is the first one's.
    assert shared([ONE, replace(ONE, dialogues=9, corpus="x")], about=("dialogues",)) == ONE
    assert "permits only valid answers" in replace(ONE, decoding="constrained").long()


def test_the_long_form_says_when_there_are_no_intervals() -> None:
    assert "no intervals" in replace(ONE, draws=0).long()
    assert (
        "dialogue level, confirms only, 14 labels"
        in replace(ONE, level="confirm", labels=14).long()
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "bleu|" + LINE.split("|", 1)[1],
        LINE.replace("|zd:0", ""),
        LINE.replace("zd:0", "zd:zero"),
        LINE.replace("lvl:turn|labels:16", "labels:16|lvl:turn"),
        LINE.replace("|n:600", "|n:600|more:1"),
        LINE.replace("|v0.1.0", ""),
        LINE.replace("10000@0", "10000"),
    ],
)
def test_a_line_that_is_no_signature_is_refused_with_an_example(line: str) -> None:
    with pytest.raises(ScoringError, match=r"Expected the form cradle\|lvl"):
        Signature.parse(line)
