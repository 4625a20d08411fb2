"""Prompt templates, stored as text files."""

from cradle_lib.prompts.template import (
    DETECTION_SLOTS,
    Template,
    load_template,
    parse_template,
    template_files,
)

__all__ = [
    "DETECTION_SLOTS",
    "Template",
    "load_template",
    "parse_template",
    "template_files",
]
