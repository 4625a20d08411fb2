"""How a model's chat template frames a question, and the answer after it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from cradle_lib.detection.thoughts import is_open, markers

# What stands for a question and an answer, to find what the template writes after them.
_QUESTION: Final = "QUESTION"
_ANSWER: Final = "ANSWER"


def after_question(tokenizer: Any, switches: dict[str, Any]) -> str:
    """Gives the text that the chat template writes after a question, before the answer begins.

    Args:
        tokenizer: The model's tokenizer; without a chat template the text is empty.
        switches: Switches of the template, such as ``enable_thinking``.
    """
    chat = [{"role": "user", "content": _QUESTION}]
    return _after(_QUESTION, tokenizer, chat, switches, add_generation_prompt=True)


def _after(
    content: str,
    tokenizer: Any,
    chat: list[dict[str, str]],
    switches: dict[str, Any],
    **more: Any,
) -> str:
    if not tokenizer.chat_template:
        return ""
    written: str = tokenizer.apply_chat_template(chat, tokenize=False, **more, **switches)
    return written.rpartition(content)[2] if content in written else ""


def special_tokens(tokenizer: Any) -> dict[int, str]:
    """Lists a tokenizer's special tokens, by id: those it names, and those added as special."""
    added = tokenizer.added_tokens_decoder
    special = {id: str(token) for id, token in added.items() if token.special}
    named = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    return special | {id: str(token) for id, token in named if id is not None}


def end_tokens(lm: Any, tokenizer: Any, switches: dict[str, Any]) -> frozenset[int]:
    """Finds all tokens that end an answer, whichever part of a checkpoint names them.

    These are the end tokens of the generation configuration, of the model's configuration and of
    the tokenizer, and the token that the chat template writes after an answer.
    """
    known = _known_tokens(tokenizer)
    found = set(_as_ids(tokenizer.eos_token_id))
    template = _template_end(tokenizer, switches)
    found.update(_as_ids(template))
    generation = lm.generation_config
    ids = _as_ids(generation.eos_token_id)
    # Without a file of its own it is made from the model's configuration.
    found.update(id for id in ids if id in known or not generation._from_model_config)
    for config in (lm.config, lm.config.get_text_config()):
        ids = _as_ids(getattr(config, "eos_token_id", None))
        # Classes have default ids, which are ordinary tokens of some vocabularies.
        default = _as_ids(getattr(type(config)(), "eos_token_id", None))
        found.update(id for id in ids if id in known or id not in default)
    return frozenset(id for id in found if 0 <= id < _vocabulary(lm))


def taught_end(lm: Any, tokenizer: Any, switches: dict[str, Any]) -> int | None:
    """Gives the end token to train with: the one the chat template writes, or the tokenizer's.

    It is one of :func:`end_tokens`; ``None`` if there is none.
    """
    ends = end_tokens(lm, tokenizer, switches)
    for id in (_template_end(tokenizer, switches), tokenizer.eos_token_id):
        if id in ends:
            return int(id)
    return min(ends, default=None)


def may_think(tokenizer: Any, switches: dict[str, Any]) -> bool:
    """Whether an answer may contain a thought, also one whose beginning has no marker.

    It may if the chat template or the vocabulary has markers of thoughts, unless the template has
    opened and closed an empty thought before the answer.
    """
    framed = after_question(tokenizer, switches)
    if any(markers(framed)):
        return is_open(framed)
    texts = (str(tokenizer.chat_template or ""), *_known_tokens(tokenizer).values())
    return any(next(markers(text), None) is not None for text in texts)


def _vocabulary(lm: Any) -> int:
    """Number of tokens that a model rates."""
    output = lm.get_output_embeddings()
    return int((lm.get_input_embeddings() if output is None else output).weight.shape[0])


def _as_ids(value: Any) -> Collection[int]:
    return value if isinstance(value, list | tuple) else () if value is None else (value,)


def _known_tokens(tokenizer: Any) -> dict[int, str]:
    """Lists special and added tokens, by id."""
    added = {id: str(token) for id, token in tokenizer.added_tokens_decoder.items()}
    return special_tokens(tokenizer) | added


def _template_end(tokenizer: Any, switches: dict[str, Any]) -> int | None:
    """Finds the special or added token that the chat template writes right after an answer."""
    from jinja2 import TemplateError

    chat = [{"role": "user", "content": _QUESTION}, {"role": "assistant", "content": _ANSWER}]
    try:
        rest = _after(_ANSWER, tokenizer, chat, switches).lstrip()
    except TemplateError:
        # It takes no answers.
        return None
    known = _known_tokens(tokenizer)
    if "<|channel|>" in known.values() and rest.startswith("<|end|>"):
        # In gpt-oss's format it ends each message, also that of a thought.
        return None
    longest_first = sorted(known.items(), key=lambda token: -len(token[1]))
    return next((id for id, text in longest_first if text and rest.startswith(text)), None)
