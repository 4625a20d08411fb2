"""Engines, by the name that the registry gives them."""

from __future__ import annotations

from pathlib import Path

from cradle_lib.corpus import Corpus
from cradle_lib.detection.engines.always_none import AlwaysNone
from cradle_lib.detection.engines.base import Emit, Engine, Options, Sequential
from cradle_lib.detection.registry import Model

__all__ = ["Emit", "Engine", "Options", "Sequential", "make_engine"]


def make_engine(model: Model, corpus: Corpus, options: Options) -> Engine:
    """Makes the engine of a model; heavy things are loaded when the first question comes.

    Args:
        model: An entry of the registry.
        corpus: The corpus of the run; a trained baseline finds its train split beside it.
        options: How this machine runs it.

    Returns:
        The engine.

    Raises:
        EngineError: If the engine can't start: a missing key, file or package.
    """
    match model.engine:
        case "always-none":
            return AlwaysNone()
        case "keyword":
            from cradle_lib.detection.engines.keyword import Keyword

            return Keyword()
        case "tfidf":
            from cradle_lib.detection.engines.tfidf import Tfidf

            return Tfidf(corpus)
        case "replay":
            from cradle_lib.detection.engines.replay import Replay

            return Replay(Path(str(model.weights)))
        case "reference" | "wave":
            from cradle_lib.detection.local.reference import Reference
            from cradle_lib.detection.local.wave import Wave
            from cradle_lib.detection.snapshot import hub_commit

            kind = Reference if model.engine == "reference" else Wave
            engine: Engine = kind(model, options)
            engine.revision = hub_commit(model)
            return engine
        case "openai":
            from cradle_lib.detection.engines.openai_chat import OpenAIChat

            return OpenAIChat(model, options)
        case "anthropic":
            from cradle_lib.detection.engines.anthropic_messages import AnthropicMessages

            return AnthropicMessages(model, options)
