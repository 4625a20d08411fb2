"""Detection: dialogues and a model in, predictions out. Knows no score."""

from cradle_lib.detection.answers import OUTCOMES, Outcome, read_answer
from cradle_lib.detection.engines import Engine, Options, make_engine
from cradle_lib.detection.estimate import estimate_cost
from cradle_lib.detection.journal import Journal, read_journal
from cradle_lib.detection.places import journal_path
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.detection.registry import Decoding, Model, find_model, in_format, load_registry
from cradle_lib.detection.run import Progress, run
from cradle_lib.detection.sampling import sample_dialogues
from cradle_lib.detection.session import Answer, Prediction, Prompt, Session

__all__ = [
    "OUTCOMES",
    "Answer",
    "Decoding",
    "Engine",
    "Journal",
    "Model",
    "Options",
    "Outcome",
    "Prediction",
    "Predictions",
    "Progress",
    "Prompt",
    "Session",
    "estimate_cost",
    "find_model",
    "in_format",
    "journal_path",
    "load_predictions",
    "load_registry",
    "make_engine",
    "read_answer",
    "read_journal",
    "run",
    "sample_dialogues",
]
