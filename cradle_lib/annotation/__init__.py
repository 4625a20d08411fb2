"""Annotation: two people label each dialogue, their agreement is measured, a vote decides.

The procedure is that of the paper (Sec 3.2, Appendix B); the forms are Label Studio's.
"""

from cradle_lib.annotation.adjudication import Adjudication, adjudicate
from cradle_lib.annotation.agreement import AGREEMENT_NAMES, agreement, agreement_frame
from cradle_lib.annotation.exports import load_annotations
from cradle_lib.annotation.interface import labelling_config, labelling_keys
from cradle_lib.annotation.protocol_warnings import protocol_warnings
from cradle_lib.annotation.study import Study, plan_study
from cradle_lib.annotation.table import Annotation, Annotations, read_annotations, write_annotations
from cradle_lib.annotation.voting import OUTCOME_KEYS

__all__ = [
    "AGREEMENT_NAMES",
    "OUTCOME_KEYS",
    "Adjudication",
    "Annotation",
    "Annotations",
    "Study",
    "adjudicate",
    "agreement",
    "agreement_frame",
    "labelling_config",
    "labelling_keys",
    "load_annotations",
    "plan_study",
    "protocol_warnings",
    "read_annotations",
    "write_annotations",
]
