"""Annotation: the labels of two people per dialogue, their agreement, and adjudication.

The procedure is that of the paper (Sec 3.2, Appendix B).
"""

from cradle_lib.annotation.adjudication import Adjudication, adjudicate
from cradle_lib.annotation.agreement import AGREEMENT_NAMES, agreement, agreement_frame
from cradle_lib.annotation.load import load_annotations
from cradle_lib.annotation.protocol_warnings import protocol_warnings
from cradle_lib.annotation.table import Annotation, Annotations, read_annotations, write_annotations
from cradle_lib.annotation.voting import OUTCOME_KEYS

__all__ = [
    "AGREEMENT_NAMES",
    "OUTCOME_KEYS",
    "Adjudication",
    "Annotation",
    "Annotations",
    "adjudicate",
    "agreement",
    "agreement_frame",
    "load_annotations",
    "protocol_warnings",
    "read_annotations",
    "write_annotations",
]
