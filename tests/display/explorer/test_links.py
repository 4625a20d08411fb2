"""Links to turns in the explorer, from values and from rows of frames."""

from __future__ import annotations

import pandas as pd

from cradle_lib.display.explorer.links import link_to_turns, with_links


def test_special_characters_in_links_are_quoted() -> None:
    link = link_to_turns(["a, b&c=d;e:f", "g#h"], dialogue='"<x>"', turn=4, gold="none")
    assert link == ("explore.html#d=%22%3Cx%3E%22&t=5&m=a%2C%20b%26c%3Dd%3Be%3Af,g%23h&f=gold:none")


def test_columns_of_a_frame_become_filters_without_defaults() -> None:
    frame = pd.DataFrame(
        {
            "system": ["a", "a", None, "b"],
            "gold": pd.Categorical(["none", None, "none", "alert_past"]),
            "predicted": ["SH", None, None, "alert"],
            "pairing": ["all", "one-to-one", "all", "one-to-one"],
            "count": [1, 2, 3, 4],
        }
    )
    found = with_links(frame, category="any")
    assert [None if pd.isna(link) else link for link in found["link"]] == [
        "explore.html#m=a&f=gold:none;predicted:SH;pairing:all;category:any",
        "explore.html#m=a&f=category:any",
        None,
        "explore.html#m=b&f=gold:alert_past;predicted:alert;category:any",
    ]
    assert "link" not in frame.columns


def test_a_filter_may_have_several_values_and_links_may_show_annotators() -> None:
    link = link_to_turns(["a"], people=True, outcome=("refused", "failed"), among=["d,1.0"])
    assert link == "explore.html#v=annotators&m=a&f=outcome:refused,failed;among:d%2C1.0"
    frame = pd.DataFrame({"system": ["a"], "gold_order": ["neither"]})
    assert with_links(frame, people=True)["link"].tolist() == [
        "explore.html#v=annotators&m=a&f=gold_order:neither"
    ]
