"""The labelling interface, as a Label Studio configuration made from the label set.

A task shows one dialogue, Listener turns included. An annotator picks one label or several,
by mouse or by key, and then the user turn that they belong to: one region is one turn. Exports
contain the label names of :mod:`cradle_lib.labels`, not the words on the buttons. The definitions,
rules and keys are in ``interface.yml``, the layout is in ``interface.xml``. The colours are those
of the explorer.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Appendix B.1 and Figures 6 and 7.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pandas as pd
import yaml

from cradle_lib import paths
from cradle_lib.errors import CradleError
from cradle_lib.labels import CRISIS_TYPES, LABELS, TEMPORAL_STATES, crisis_type, stage, temporal

#: Names of the two tags that every region of an export refers to.
CONTROL: Final = "label"
OBJECT: Final = "dialogue"

_FOLDER: Final = Path(__file__).parent
_SETTINGS: Final[dict[str, Any]] = yaml.safe_load(
    _FOLDER.joinpath("interface.yml").read_text(encoding="utf-8")
)
DEFINITIONS: Final[dict[str, str]] = _SETTINGS["definitions"]
RULES: Final[list[str]] = _SETTINGS["rules"]
HOTKEYS: Final[dict[str, str]] = _SETTINGS["hotkeys"]


def title(label: str) -> str:
    """Formats a label for a button: ``Alert: ongoing``, ``Confirm SI active: past``."""
    crisis = crisis_type(label)
    name = stage(label).capitalize() + ("" if crisis is None else f" {crisis.replace('_', ' ')}")
    return f"{name}: {temporal(label)}"


def meaning(label: str) -> str:
    """Explains a label in a sentence or two, without its temporal state."""
    crisis = crisis_type(label)
    if crisis is None:
        return DEFINITIONS["alert"]
    return f"{CRISIS_TYPES[crisis].capitalize()}. {DEFINITIONS[crisis]}"


def labelling_keys() -> pd.DataFrame:
    """Lists the labels of the interface, with their buttons, keys and definitions.

    Returns:
        One row for each label: ``label`` (str), ``button`` (categorical: its text without the
        temporal state), ``temporal`` (categorical: ``ongoing`` or ``past``), ``key`` (str: the
        keyboard shortcut), ``meaning`` and ``period`` (str: definitions of the button and of the
        temporal state).
    """
    buttons = [title(label).rpartition(": ")[0] for label in LABELS]
    states = [temporal(label) for label in LABELS]
    return pd.DataFrame(
        {
            "label": list(LABELS),
            "button": pd.Categorical(buttons, list(dict.fromkeys(buttons))),
            "temporal": pd.Categorical(states, TEMPORAL_STATES),
            "key": [HOTKEYS[label] for label in LABELS],
            "meaning": [meaning(label) for label in LABELS],
            "period": [DEFINITIONS[state] for state in states],
        }
    )


def labelling_config() -> str:
    """Writes the labelling configuration.

    Returns:
        XML for Label Studio: rules and definitions that fold away, sixteen labels with
        their keys, and the dialogue. It takes tasks with ``turns`` (a list of objects with
        ``author`` and ``text``, one for each turn) and ``note``.

    Raises:
        CradleError: If a package is not installed.
    """
    try:
        # matplotlib takes a second to import, and only this function needs the palette.
        from jinja2 import Template

        from cradle_lib.display.theme import PALETTE
    except ModuleNotFoundError as error:
        raise CradleError(
            f"the labelling interface needs the package {error.name}, which is not installed",
            hint=f"Install it with `{paths.install_command('book')}`.",
        ) from None
    colours = dict(zip(CRISIS_TYPES, PALETTE, strict=False))
    colour = [colours.get(crisis_type(label) or "", _SETTINGS["alert_colour"]) for label in LABELS]
    meanings = [f"{CRISIS_TYPES.get(name, name)}: {text}" for name, text in DEFINITIONS.items()]
    text = _FOLDER.joinpath("interface.xml").read_text(encoding="utf-8")
    template = Template(text, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    config: str = template.render(
        panels=[("Rules", RULES), ("Definitions", meanings)],
        labels=labelling_keys().assign(colour=colour).to_dict("records"),
    )
    return config
