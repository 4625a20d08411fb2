"""Posts: reading, and messages about invalid ones."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_extras.construction.posts import BENCH_LABELS, load_posts, post_mask
from cradle_lib import labels
from cradle_lib.errors import CorpusError

GOOD = {"id": "a", "title": "T", "text": "Some text.", "labels": "selfharm_past"}


def write(path: Path, *rows: dict[str, object]) -> Path:
    frame = pd.DataFrame(list(rows))
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_the_same_posts_are_read_from_each_format(tmp_path: Path, ending: str) -> None:
    rows = GOOD, GOOD | {"id": "007", "labels": "no_crisis"}
    posts = load_posts(write(tmp_path / f"p{ending}", *rows))
    assert [post.id for post in posts] == ["a", "007"]
    assert [post.mask for post in posts] == [labels.BITS["confirm_SH_past"], 0]
    assert posts.fingerprint == load_posts(write(tmp_path / "q.csv", *rows)).fingerprint


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([GOOD | {"text": "  "}], "row 0: post a: no text"),
        ([GOOD | {"labels": "selfharm_pst"}], "row 0: post a: unknown label .*selfharm_pst"),
        ([GOOD | {"labels": "alert_past"}], "label of turns"),
        ([GOOD, GOOD], "row 1: post a: the id occurs twice"),
    ],
)
def test_invalid_posts_are_refused(
    tmp_path: Path, rows: list[dict[str, object]], message: str
) -> None:
    with pytest.raises(CorpusError, match=message):
        load_posts(write(tmp_path / "p.csv", *rows))


@settings(max_examples=20)
@given(st.sets(st.sampled_from(sorted(BENCH_LABELS))), st.sampled_from(["; ", ",", " | "]))
def test_labels_can_be_given_by_each_of_their_names(names: set[str], separator: str) -> None:
    confirms = [BENCH_LABELS[name] for name in sorted(names)]
    expected = labels.mask_of(confirms)
    assert post_mask(separator.join(sorted(names))) == expected
    assert post_mask(confirms) == expected
    assert post_mask(separator.join(labels.short(name) for name in confirms)) == expected


def test_the_shipped_posts_have_each_label() -> None:
    posts = load_posts()
    assert len(posts) == 60
    assert sum(post.mask == 0 for post in posts) == 12
    assert {label for p in posts for label in labels.labels_of(p.mask)} == set(
        BENCH_LABELS.values()
    )
