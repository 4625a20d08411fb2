"""The labelling configuration, judged by Label Studio's own library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cradle_extras.label_studio.interface import (
    CONTROL,
    HOTKEYS,
    labelling_config,
    title,
)
from cradle_lib.labels import LABELS


@pytest.fixture(scope="module")
def interface() -> Any:
    sdk = pytest.importorskip("label_studio_sdk.label_interface")
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


def test_every_label_has_its_own_key_and_words() -> None:
    assert len({*HOTKEYS.values()}) == len(LABELS) == len({title(label) for label in LABELS})
    labels = list(ET.fromstring(labelling_config()).iter("Label"))
    assert [label.get("alias") for label in labels] == list(LABELS)
    assert [label.get("hotkey") for label in labels] == [HOTKEYS[label] for label in LABELS]
