from __future__ import annotations

from dataclasses import fields, replace

import pandas as pd
import pytest

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.signature import Signature, require_comparable, signed

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


@pytest.mark.parametrize("field", [field.name for field in fields(Signature)])
def test_every_field_is_in_both_forms_and_prevents_comparison(field: str) -> None:
    words = {"orphans": "count", "unparsed": "none", "macro_f1": "harmonic"}
    value = getattr(ONE, field)
    changed = words.get(field, "changed") if isinstance(value, str) else value + 7
    other = replace(ONE, **{field: changed})
    assert str(other) != str(ONE)
    assert other.long() != ONE.long()
    # Decoding is a property of the system and does not prevent comparison.
    if field == "decoding":
        both = "+".join(sorted([value, changed]))
        assert require_comparable("ab", [ONE, other]) == replace(ONE, decoding=both)
        return
    with pytest.raises(ScoringError, match=rf"{field} is .* for a and .* for b"):
        require_comparable("ab", [ONE, other])


def test_different_signatures_become_a_list_and_equal_ones_a_string() -> None:
    both = pd.DataFrame({"signature": ["a", "b", "a", None]})
    assert signed(both).attrs["signature"] == ["a", "b"]
    assert signed(both[:1].copy()).attrs["signature"] == "a"
    assert signed(pd.DataFrame({"value": []})).attrs["signature"] == []
    assert signed(pd.DataFrame({"value": [1]}), "c").attrs["signature"] == "c"
