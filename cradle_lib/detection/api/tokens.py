"""Counts tokens for estimates, without a model, a network or a key.

OpenAI's encoding ``o200k_base`` is the only encoding of a provider that is available offline: its
vocabulary is in ``data/tokenizers/``, and OpenAI's ``tiktoken`` applies it. Anthropic and Google
publish none for the registered models. Their tokens are counted with ``o200k_base`` too, and
tables say so.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import cache
from typing import TYPE_CHECKING, Final

from cradle_lib import paths
from cradle_lib.errors import EngineError

if TYPE_CHECKING:
    from tiktoken import Encoding

TOKENIZER: Final = "o200k_base"
VOCABULARY: Final = paths.DATA / "tokenizers" / f"{TOKENIZER}.tiktoken.gz"
# The checksum that tiktoken itself demands of the file.
_SHA256: Final = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_ENDING: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERN: Final = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _ENDING,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _ENDING,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


def count_tokens(text: str) -> int:
    """Counts tokens under :data:`TOKENIZER`; control tokens count as ordinary text.

    Raises:
        EngineError: If ``tiktoken`` is not installed or the vocabulary is damaged.
    """
    return len(encoding().encode_ordinary(text))


def last_seam(text: str, end: int) -> int:
    """Finds the last position up to ``end`` that is always between two tokens; 0 if there is none.

    The pattern always cuts between a line break and anything but white space or a slash, so that
    the text before and after such a position can be counted separately.
    """
    while (found := text.rfind("\n", 0, end)) >= 0:
        after = text[found + 1 : found + 2]
        if after and not after.isspace() and after != "/":
            return found + 1
        end = found
    return 0


@cache
def encoding() -> Encoding:
    """Loads the encoding, once.

    Raises:
        EngineError: As :func:`count_tokens`.
    """
    try:
        from tiktoken import Encoding
    except ImportError:
        raise EngineError(
            "tokens can't be counted: package tiktoken is missing. Install it with "
            f"`{paths.install_command('api')}`."
        ) from None
    try:
        content = gzip.decompress(VOCABULARY.read_bytes())
    except (OSError, EOFError) as error:
        raise EngineError(f"{paths.shown(VOCABULARY)}: can't be read ({error})") from None
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise EngineError(
            f"{paths.shown(VOCABULARY)}: is not the vocabulary of {TOKENIZER}. Restore the file."
        )
    ranks = (line.split() for line in content.splitlines())
    return Encoding(
        name=TOKENIZER,
        pat_str=_PATTERN,
        mergeable_ranks={base64.b64decode(piece): int(rank) for piece, rank in ranks},
        special_tokens={},
    )
