"""Resolves the language model of a writer, with a token limit for whole dialogues."""

from __future__ import annotations

from typing import Any, Final

from cradle_lib.detection import Model, resolve
from cradle_lib.errors import RegistryError

# Token limit of a dialogue: fifteen turns of about forty tokens, more than doubled.
_LONGEST: Final = 1_500


def writer_model(writer: str | Model, **settings: Any) -> Model:
    """Finds the language model of a writer.

    Args:
        writer: A name or a spec, which gets the token limit of a dialogue if none is set; or a
            model, which is not changed.
        **settings: For a spec, as for :func:`.construct`.

    Returns:
        The model.

    Raises:
        RegistryError: If there is none, or it can't write text.
    """
    if isinstance(writer, str) and writer.startswith("hf:"):
        # The default engine for weights is made for many short answers.
        settings["engine"] = settings.get("engine") or "reference"
    model = resolve(writer, **settings)
    decoding = model.decoding
    if model.kind == "baseline" or (decoding and decoding.mode):
        raise RegistryError(
            f"{model.name} can't write dialogues. Name a language model, such as openai:NAME, "
            "anthropic:NAME or hf:ORG/NAME."
        )
    named = isinstance(writer, str) and settings.get("max_new_tokens") is None
    if named and decoding and decoding.max_new_tokens < _LONGEST:
        # The limit of an entry is for labels.
        longer = decoding.model_copy(update={"max_new_tokens": _LONGEST})
        model = model.model_copy(update={"decoding": longer})
    return model
