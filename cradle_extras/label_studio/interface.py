"""The labelling interface, as a Label Studio configuration made from the label set.

A task shows one dialogue, Listener turns included. An annotator picks one label or several,
by mouse or by key, and then the user turn that they belong to: one region is one turn. The
export holds the label names of :mod:`cradle_lib.labels`, not the words on the buttons.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Appendix B.1 and Figures 6 and 7.
"""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree as ET

import pandas as pd

from cradle_lib.labels import CRISIS_TYPES, LABELS, TEMPORAL_STATES, crisis_type, stage, temporal

#: Names of the two tags that every region of an export refers to.
CONTROL: Final = "label"
OBJECT: Final = "dialogue"

#: What an annotator needs to know about each label's first part, at hand in the interface.
DEFINITIONS: Final = {
    "alert": (
        "The first ambiguous sign of a crisis: it would worry a clinician, but does not yet "
        "say what is wrong. Ordinary distress is not an alert. No crisis type is chosen."
    ),
    "confirm": "The first turn on which the crisis type becomes explicit.",
    "SI_passive": "Wishing not to be alive, without intent, plan or preparation (C-SSRS 1-3).",
    "SI_active": "Thoughts of ending one's life with intent, plan or preparation (C-SSRS 4-5).",
    "SH": "Hurting oneself on purpose without wanting to die, or the urge to.",
    "DV": (
        "Abuse by an intimate partner: physical, emotional, financial or controlling. "
        "Abuse by parents or siblings is not domestic violence."
    ),
    "CA": (
        "Abuse or neglect of someone under 18 by an adult; past if an adult tells it "
        "later. May stand beside rape."
    ),
    "SHA": "Unwanted sexual conduct without penetration.",
    "RA": (
        "Penetration without consent. It stands for harassment in the same event; with "
        "someone under 18 child abuse is labelled too."
    ),
    "ongoing": "Now or recently, or from the past until now.",
    "past": "Over, told as history.",
}
RULES: Final = (
    "Label what the User lived through or is living through: not other people's stories, "
    "hypotheticals or opinions.",
    "Each event gets at most one alert and one confirm in a dialogue, each at its first "
    "appearance. Another type, or another temporal state, is another event.",
    "Listener turns are shown to be read. They are never labelled.",
    "A turn may carry several labels. A dialogue without any is submitted as it is.",
)
#: One key for each label: neighbours on the keyboard for ongoing and past.
HOTKEYS: Final = dict(zip(LABELS, "12qwerasdfzxcvtg", strict=True))
# An alert is the only yellow; crisis types have the colours of the book's explorer. Past is told
# apart by its name.
_COLOURS: Final = {
    "alert": "#f0e442",
    "SI_passive": "#0072b2",
    "SI_active": "#d55e00",
    "SH": "#b402fd",
    "DV": "#625201",
    "CA": "#a14265",
    "SHA": "#6992e4",
    "RA": "#541100",
}
# The labels stay in view while the dialogue scrolls; times, which dialogues lack, are hidden.
_STYLE: Final = (
    ".htx-labels{position:sticky;top:0;z-index:2;padding:.4rem 0;"
    "background:var(--color-neutral-background,#fff)} [class*='time--']{display:none} "
    ".htx-fine h4{font-size:.9rem;font-weight:400;line-height:1.35;margin:.25rem 0 !important}"
)


def title(label: str) -> str:
    """Words a label for a button: ``Alert: ongoing``, ``Confirm SI active: past``."""
    crisis = crisis_type(label)
    name = stage(label).capitalize() + ("" if crisis is None else f" {crisis.replace('_', ' ')}")
    return f"{name}: {temporal(label)}"


def meaning(label: str) -> str:
    """Explains a label in a sentence or two, without its temporal state."""
    crisis = crisis_type(label)
    if crisis is None:
        return DEFINITIONS["alert"]
    return f"{CRISIS_TYPES[crisis].capitalize()}. {DEFINITIONS[crisis]}"


def definition(label: str) -> str:
    """Explains a label, its temporal state included."""
    return f"{meaning(label)} {temporal(label).capitalize()}: {DEFINITIONS[temporal(label)]}"


def labelling_keys() -> pd.DataFrame:
    """Lists what the interface offers.

    Returns:
        One row for each label: ``label`` (str), ``button`` (categorical: its words without the
        temporal state), ``temporal`` (categorical: ``ongoing`` or ``past``), ``key`` (str: what
        to press), ``meaning`` and ``period`` (str: what an annotator is told about the button and
        about the temporal state).
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
    """
    view = ET.Element("View")
    ET.SubElement(view, "Style").text = _STYLE
    ET.SubElement(view, "Header", value="$note", size="5")
    panels = ET.SubElement(view, "Collapse")
    rules = _panel(panels, "Rules")
    for rule in RULES:
        ET.SubElement(rules, "Header", value=rule, size="6")
    meanings = _panel(panels, "Definitions")
    for name, meaning in DEFINITIONS.items():
        full = CRISIS_TYPES.get(name, name)
        ET.SubElement(meanings, "Header", value=f"{full}: {meaning}", size="6")
    strip = ET.SubElement(view, "View", className="htx-labels")
    control = ET.SubElement(
        strip, "ParagraphLabels", name=CONTROL, toName=OBJECT, choice="multiple", showInline="true"
    )
    for label in LABELS:
        ET.SubElement(
            control,
            "Label",
            value=title(label),
            alias=label,
            hotkey=HOTKEYS[label],
            hint=definition(label),
            background=_COLOURS[crisis_type(label) or "alert"],
        )
    ET.SubElement(
        view,
        "Paragraphs",
        name=OBJECT,
        value="$turns",
        layout="dialogue",
        nameKey="author",
        textKey="text",
        granularity="paragraph",
    )
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _panel(panels: ET.Element, name: str) -> ET.Element:
    panel = ET.SubElement(panels, "Panel", value=name)
    return ET.SubElement(panel, "View", className="htx-fine")
