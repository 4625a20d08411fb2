"""Language models as writers: which may write, and how long their texts may be."""

from __future__ import annotations

from typing import Any, Final

from cradle_lib.detection import Model, resolve
from cradle_lib.errors import RegistryError

PHRASE_BANK: Final = "phrase-bank"
# Fifteen turns of some forty tokens, and room for as many words again.
_LONGEST: Final = 1_500


def writer_model(writer: str | Model, **settings: Any) -> Model:
    """Finds the language model that a writer's name or spec stands for.

    Args:
        writer: A name or a spec, whose limit of tokens becomes that of a dialogue if none is
            set; or a model, which is taken as it is.
        **settings: For a spec, as for :func:`.construct`.

    Returns:
        The model.

    Raises:
        RegistryError: If there is none, or it writes no text.
    """
    if isinstance(writer, str) and writer.startswith("hf:"):
        # Its other engine is made for many short answers.
        settings["engine"] = settings.get("engine") or "reference"
    model = resolve(writer, **settings)
    decoding = model.decoding
    if model.kind == "baseline" or (decoding and decoding.mode):
        raise RegistryError(
            f"{model.name} writes no dialogues. Name {PHRASE_BANK} or a language model, such as "
            "openai:NAME, anthropic:NAME or hf:ORG/NAME."
        )
    named = isinstance(writer, str) and settings.get("max_new_tokens") is None
    if named and decoding and decoding.max_new_tokens < _LONGEST:
        # An entry's own limit is that of a label.
        longer = decoding.model_copy(update={"max_new_tokens": _LONGEST})
        model = model.model_copy(update={"decoding": longer})
    return model
