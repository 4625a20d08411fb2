"""The labelling configuration, validated by Label Studio's own library."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cradle_extras.label_studio.interface import CONTROL, HOTKEYS, labelling_config, title
from cradle_lib.labels import LABELS


def test_label_studio_accepts_configuration_tasks_and_annotations(exports: dict[str, Any]) -> None:
    sdk = pytest.importorskip("label_studio_sdk.label_interface")
    interface = sdk.LabelInterface(labelling_config())
    interface.validate()
    control = interface.get_control(CONTROL)
    assert control.tag == "ParagraphLabels"
    assert set(control.labels) == set(LABELS)
    for tasks in exports.values():
        for task in tasks:
            assert interface.validate_task({"data": task["data"]})
            assert all(map(interface.validate_annotation, task["annotations"]))
    assert not interface.validate_task({"data": {"text": "nothing that it shows"}})


def test_every_label_has_its_own_key_and_title() -> None:
    assert len({*HOTKEYS.values()}) == len(LABELS) == len({title(label) for label in LABELS})
    labels = list(ET.fromstring(labelling_config()).iter("Label"))
    assert [label.get("alias") for label in labels] == list(LABELS)
    assert [label.get("hotkey") for label in labels] == [HOTKEYS[label] for label in LABELS]
