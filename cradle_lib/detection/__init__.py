"""Detection: dialogues and a model in, predictions out. Knows no score."""

from cradle_lib.detection.api.costs import estimate_costs, run_usage
from cradle_lib.detection.benchmark import benchmark_results
from cradle_lib.detection.engine import Engine, Options, make_engine
from cradle_lib.detection.find_runs import corpus_options, dev_runs, repeated_runs, stored_runs
from cradle_lib.detection.journal import Journal, journal_path, read_journal
from cradle_lib.detection.model import Decoding, Model
from cradle_lib.detection.parsing import OUTCOMES, Outcome, read_answer
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.detection.registry import find_model, load_registry, resolve
from cradle_lib.detection.run import Progress, run_model
from cradle_lib.detection.selection import sample_dialogues
from cradle_lib.detection.session import Answer, Prediction, Prompt, Session
from cradle_lib.detection.stored_answers import stored_answers, stored_records

__all__ = [
    "OUTCOMES", "Answer", "Decoding", "Engine", "Journal", "Model", "Options", "Outcome",
    "Prediction", "Predictions", "Progress", "Prompt", "Session", "benchmark_results",
    "corpus_options", "dev_runs", "estimate_costs", "find_model", "journal_path",
    "load_predictions", "load_registry", "make_engine", "read_answer", "read_journal",
    "repeated_runs", "resolve", "run_model", "run_usage", "sample_dialogues", "stored_answers",
    "stored_records", "stored_runs",
]  # fmt: skip
