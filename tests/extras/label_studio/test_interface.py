"""The labelling configuration, judged by Label Studio's own library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from cradle_extras.label_studio.interface import (
    CONTROL,
    DEFINITIONS,
    HOTKEYS,
    RULES,
    definition,
    labelling_config,
    title,
)
from cradle_lib.display.theme import PALETTE
from cradle_lib.labels import CRISIS_TYPES, LABELS

from ...display.test_theme import VISION, lab, linear

sdk = pytest.importorskip("label_studio_sdk.label_interface")


@pytest.fixture(scope="module")
def interface() -> Any:
    return sdk.LabelInterface(labelling_config())


def test_label_studio_accepts_the_configuration(interface: Any) -> None:
    interface.validate()
    control = interface.get_control(CONTROL)
    assert control.tag == "ParagraphLabels"
    assert set(control.labels) == set(LABELS)


def test_label_studio_accepts_every_task_and_annotation(
    interface: Any, exports: Callable[[], dict[str, Any]]
) -> None:
    count = 0
    for tasks in exports().values():
        for task in tasks:
            assert interface.validate_task({"data": task["data"]})
            for annotation in task["annotations"]:
                assert interface.validate_annotation(annotation)
                count += bool(annotation["result"])
    assert count > 20
    assert not interface.validate_task({"data": {"text": "nothing that it shows"}})
    annotation["result"] = [
        {
            "id": "x",
            "from_name": CONTROL,
            "to_name": "dialogue",
            "type": "paragraphlabels",
            "value": {"start": "0", "end": "0", "paragraphlabels": ["no such label"]},
        }
    ]
    assert not interface.validate_annotation(annotation)


def test_every_label_has_its_own_key_words_and_definition() -> None:
    assert len({*HOTKEYS.values()}) == len(LABELS) == len({title(label) for label in LABELS})
    labels = list(ET.fromstring(labelling_config()).iter("Label"))
    assert [label.get("alias") for label in labels] == list(LABELS)
    view = ET.fromstring(labelling_config())
    control, shown = view.find(".//ParagraphLabels"), view.find(".//Paragraphs")
    assert control is not None
    assert control.get("choice") == "multiple"
    assert shown is not None
    assert shown.get("granularity") == "paragraph"
    for label in labels:
        assert label.get("hint") == definition(str(label.get("alias")))
        assert label.get("hotkey") == HOTKEYS[str(label.get("alias"))]
    assert title("confirm_SI_active_past") == "Confirm SI active: past"
    assert title("alert_ongoing") == "Alert: ongoing"


def test_rules_and_definitions_are_at_hand() -> None:
    shown = [element.get("value") or "" for element in ET.fromstring(labelling_config()).iter()]
    for rule in RULES:
        assert rule in shown
    for name, meaning in DEFINITIONS.items():
        assert f"{CRISIS_TYPES.get(name, name)}: {meaning}" in shown
    assert set(CRISIS_TYPES) < set(DEFINITIONS)


@pytest.mark.parametrize("vision", VISION)
def test_an_alert_has_a_colour_unlike_that_of_any_confirm(vision: str) -> None:
    labels = ET.fromstring(labelling_config()).iter("Label")
    colours = {label.get("alias"): label.get("background") or "" for label in labels}
    alert, *confirms = dict.fromkeys(colours.values())
    assert [colours[name] for name in ("alert_ongoing", "alert_past")] == [alert, alert]
    # Those of the explorer.
    assert confirms == list(PALETTE[: len(CRISIS_TYPES)])
    seen = [lab(np.array(VISION[vision]) @ linear(colour)) for colour in (alert, *confirms)]
    assert min(float(np.linalg.norm(seen[0] - other)) for other in seen[1:]) > 30
