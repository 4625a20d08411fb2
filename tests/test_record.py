"""The record of a run as a data frame."""

from __future__ import annotations

import numpy as np

from cradle_lib.record import Record


def test_the_frame_of_a_record_has_all_fields() -> None:
    record = Record.create(
        model="m", name="M", group="own", engine="wave", prompt="turn", prompt_hash="0" * 16,
        decoding={}, corpus="c", corpus_fingerprint="f" * 12,
    )  # fmt: skip
    record = record.model_copy(
        update={"decoding": {"mode": "free", "n": 4}, "dialogues": ["a", "b"], "dirty": True}
    )
    frame = record.to_frame()
    shown = dict(zip(frame["field"], frame["content"], strict=True))
    fields = {name.replace("_", " ") for name in type(record).model_fields}
    assert set(shown) == fields | {"identity"}
    assert shown["decoding"] == "mode free, n 4"
    assert (shown["dialogues"], shown["dirty"]) == ("2 chosen", "yes")
    assert f"numpy {np.__version__}" in shown["packages"]
    assert frame["content"].isna().any()
