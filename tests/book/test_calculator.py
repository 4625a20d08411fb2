"""The calculator of a day's alarms in a real browser, against the library's own numbers."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser

from cradle_lib.display.calculator import Calculator
from cradle_lib.scoring import daily_alarms

RATES = pd.DataFrame(
    [
        ("Own & only", np.nan, 0.9, 0.0, 0.08),
        ("With <thresholds>", np.nan, 0.8, 0.3, 0.05),
        ("With <thresholds>", 0.75, 0.5, 0.0, 0.0),
        ("With <thresholds>", 0.01, 1.0, 0.9, 1.0),
    ],
    columns=["system", "threshold", "found", "early", "false"],
)

START = {"conversations": 1_000, "share": 0.01, "minutes": 5}


@pytest.fixture
def address(tmp_path: Path) -> str:
    """The address of a page with a calculator."""
    file = tmp_path / "page.html"
    file.write_text(Calculator(RATES, START)._repr_html_(), encoding="utf-8")
    return file.as_uri()


def test_ten_settings_give_the_numbers_of_the_library(browser: Browser, address: str) -> None:
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(address)
    # 1,000 conversations: 10 with a disclosure, of which 9 are flagged, and 79.2 of the 990 others.
    results = page.locator("[data-result]").all_inner_texts()
    assert results == ["88.2", "7.35", "1", "10.2 %"]
    chances = np.random.default_rng(0)
    # Of each slider its positions; the last share is the published one, 440 of 600 dialogues.
    settings = {
        "conversations": [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000],
        "share": [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.733],
        "minutes": [1, 2, 3, 5, 10, 15, 20, 30],
    }
    for row in itertools.islice(itertools.cycle(RATES.index), 10):
        rates = RATES.loc[row]
        part = RATES[RATES["system"] == rates["system"]]
        page.select_option("[name=system]", label=rates["system"])
        assert page.locator("[name=threshold]").is_visible() == (len(part) > 1)
        if len(part) > 1:
            page.fill("[name=threshold]", str(part.index.get_loc(row)))
        chosen = {}
        for name, values in settings.items():
            place = int(chances.integers(len(values)))
            page.fill(f"[name={name}]", str(place))
            chosen[name] = values[place]
        seen = page.locator("[data-result]").evaluate_all(
            "all => all.map(e => [e.dataset.result, Number(e.dataset.value)])"
        )
        expected = daily_alarms(*rates[["found", "early", "false"]], **chosen)
        assert dict(seen) == pytest.approx(vars(expected))
    page.fill("[name=share]", "9")
    assert page.locator("[name=share] + output").inner_text() == "73.3 % (the paper's test split)"
    assert problems == []
    page.close()


def test_without_scripts_the_calculator_is_not_shown(browser: Browser, address: str) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(address)
    assert page.locator("noscript").is_visible()
    assert page.locator("[name=share]").is_hidden()
    page.close()
