"""Annotation: two people label each dialogue, their agreement is measured, a vote decides.

The procedure is that of the paper (Sec 3.2, Appendix B); the forms are Label Studio's.
"""

from cradle_lib.annotation.adjudication import Adjudication, adjudicate
from cradle_lib.annotation.agreement import agreement
from cradle_lib.annotation.interface import labelling_config
from cradle_lib.annotation.study import Study, plan_study
from cradle_lib.annotation.table import (
    Annotation,
    Annotations,
    read_annotations,
    write_annotations,
)

__all__ = [
    "Adjudication",
    "Annotation",
    "Annotations",
    "Study",
    "adjudicate",
    "agreement",
    "labelling_config",
    "plan_study",
    "read_annotations",
    "write_annotations",
]
