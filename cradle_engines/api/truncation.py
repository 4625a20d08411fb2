"""Recognises from token counts that a server has cut a prompt.

Servers such as Ollama silently drop a part of a prompt that exceeds their context, usually its
beginning, which contains the instruction. Only the reported number of tokens shows it. One count
proves little: tokens per character depend on the model and the language, and some servers leave out
the tokens that they read from a cache.

So the server is asked to count test texts, which are made of the instruction alone: a text that is
longer than the prompt, a part of it, and a word. If the long text is counted completely, no shorter
prompt is cut, whatever its own count is. If it isn't, a prompt is cut whose count reaches that of
the long text or is too small for its length. If the long text has as many tokens as the word, the
counts mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex
from typing import Final, Literal

from cradle_lib.detection.protocol.session import Prompt

# Maximum characters of a prompt per token; usually about four in English, one or two in Chinese.
_MAX_PER_TOKEN: Final = 8
# Characters of the test texts: a word, a part between two bounds, and multiples of a part and a
# prompt.
_PART: Final = (400, 2_000)
_LONGER_THAN_PART, _LONGER_THAN_PROMPT = 3, 1.5
_WORD: Final = 15
# A smaller share of the expected tokens is too small: texts differ in characters per token.
_SHARE: Final = 0.7
# Replaces an instruction that is too short for test texts.
_PLAIN: Final = (
    "The train leaves the station at nine. It stops in four towns and arrives before noon. "
    "Passengers who want to go further change there, and take the bus to the lake. "
)
_PIECE: Final = 50

Verdict = Literal["complete", "cut", "unknown"]


@dataclass(frozen=True, slots=True)
class _Counted:
    """A text's characters, and the number of tokens that the server reported for it."""

    size: int
    tokens: int


# Smaller prompts fit into any context, and are tested only if their counts are not plausible.
_SMALLEST: Final = _Counted(1_000, 250)


class TokenCounts:
    """The token counts of a server, from which cut prompts are recognised.

    Args:
        testable: Whether the server may be asked to count test texts.

    Attributes:
        limit: ``none``: the server counted the long test text completely. ``silent``: it cuts
            texts. ``reported``: it refuses long ones. ``no counts``: its counts do not depend on
            the text. ``unknown``: it was not tested.
        are_wrong: Whether a count was found to be wrong.
    """

    def __init__(self, *, testable: bool) -> None:
        self.limit: Literal["none", "silent", "reported", "no counts", "unknown"] = "unknown"
        self.are_wrong = False
        self._testable = testable
        self._word = self._part = self._long = _Counted(0, 0)
        self._test = ""
        # The last prompt of each dialogue that the server has not cut, and its number of tokens.
        self._last: dict[str, tuple[Prompt, int]] = {}

    def next_test(self, prompt: Prompt, tokens: int) -> str | None:
        """Makes the next test text that is needed to judge a prompt; ``None`` if none is.

        Args:
            prompt: The prompt.
            tokens: Number of its tokens that the server reported.
        """
        size = len(prompt.text)
        settled = self.limit not in ("none", "unknown") or not self._testable
        small = size < _SMALLEST.size and tokens < _SMALLEST.tokens
        if settled or (small and self._is_plausible(prompt, tokens)):
            return None
        if not self._word.size:
            self._test = _test_text(prompt, _WORD)
        elif not self._part.size:
            least, most = _PART
            self._test = _test_text(prompt, min(max(size // 4, least), most))
        elif size > self._long.size or tokens > 0.9 * self._long.tokens:
            longest = max(size, self._long.size) * _LONGER_THAN_PROMPT
            length = int(max(longest, _LONGER_THAN_PART * self._part.size))
            self._test = _test_text(prompt, length)
        else:
            return None
        return self._test

    def record(self, tokens: int | None) -> None:
        """Records the number of tokens of the last test text; ``None`` if there is no count."""
        found = _Counted(len(self._test), tokens or 0)
        if tokens is None:
            self._testable, self.limit = False, "unknown"
        elif not self._word.size:
            self._word = found
        elif not self._part.size:
            self._part = found
        else:
            self._long = found
            if tokens == self._word.tokens:
                self.limit = "no counts"
            else:
                self.limit = "silent" if self._is_low(found) else "none"

    def record_error(self, *, is_refusal: bool) -> None:
        """Records an error as the answer to the last test text, such as that it is too long."""
        if is_refusal and self._part.size:
            self.limit = "reported"
        else:
            self.record(None)

    def judge(self, prompt: Prompt, tokens: int) -> Verdict:
        """Judges whether the server has cut a prompt.

        Args:
            prompt: The prompt.
            tokens: Number of its tokens that the server reported.

        Returns:
            ``complete``; ``cut``; or ``unknown`` for a prompt that is not known to be cut, but
            whose count is wrong.
        """
        verdict = self._judge(prompt, tokens)
        if verdict == "complete":
            self._last[prompt.dialogue] = (prompt, tokens)
        self.are_wrong |= verdict == "unknown"
        return verdict

    def explain(self, verdict: Verdict, size: int, tokens: int) -> str:
        """Explains a verdict other than ``complete``, and what to do; the subject is missing.

        Args:
            verdict: The verdict about a prompt.
            size: Number of the prompt's characters.
            tokens: Number of its tokens that the server reported.
        """
        counted = f"reports {tokens:,} tokens for a prompt of {size:,} characters"
        if verdict != "cut":
            why = "It leaves out tokens, probably those that it read from its prompt cache."
            if self.limit == "no counts":
                why = (
                    "Its counts do not depend on the prompt, so that cut prompts can't be "
                    "recognised: make sure that its context is long enough."
                )
            return f"{counted}. {why} The answers count; prompt tokens are recorded as unknown."
        doubt, remedy = "", ""
        if self.limit == "unknown":
            doubt = ", or its count leaves out tokens that it read from its prompt cache"
            remedy = " or switch off its prompt cache"
        return (
            f"{counted}: it has cut the prompt{doubt}. Increase its context length (Ollama: "
            f"OLLAMA_CONTEXT_LENGTH){remedy}, and start the run again"
        )

    def _judge(self, prompt: Prompt, tokens: int) -> Verdict:
        counted = _Counted(len(prompt.text), tokens)
        plausible = self._is_plausible(prompt, tokens)
        if self.limit == "no counts":
            return "unknown"
        if self.limit == "reported":
            return "complete" if plausible else "unknown"
        if self.limit == "none":
            return "complete" if plausible and not self._is_low(counted) else "unknown"
        if self.limit == "silent":
            most = self._long.tokens
            if abs(tokens - most) <= most // 256:
                return "cut"
            if not self._is_low(counted):
                return "complete"
            # A cut prompt fills at least half of the context.
            fits = self._expected(counted.size) < 0.9 * most
            return "unknown" if fits and tokens < most / 2 else "cut"
        if plausible:
            return "complete"
        before = self._extended(prompt)
        # The context holds the prompt before, and a cut prompt fills at least half of it.
        return "unknown" if before is not None and tokens < before.tokens / 2 else "cut"

    def _is_plausible(self, prompt: Prompt, tokens: int) -> bool:
        """Whether a prompt, or what it adds to the dialogue's last one, has enough tokens."""
        before = self._extended(prompt) or _Counted(0, 0)
        return (tokens - before.tokens) * _MAX_PER_TOKEN >= len(prompt.text) - before.size

    def _extended(self, prompt: Prompt) -> _Counted | None:
        """The last prompt of the dialogue, if this one contains its history."""
        last, counted = self._last.get(prompt.dialogue, (None, 0))
        # Prompts of other tasks have no history, and need not extend earlier ones.
        past = prompt.history
        if last is None or past == last.history or not past.startswith(last.history):
            return None
        return _Counted(len(last.text), counted)

    def _is_low(self, counted: _Counted) -> bool:
        """Whether a text has far fewer tokens than the part of the instruction, by its length."""
        overhead = self._word.tokens
        return counted.tokens - overhead < _SHARE * (self._expected(counted.size) - overhead)

    def _expected(self, size: int) -> float:
        """Tokens of a text with as many per character as the part of the instruction."""
        word, part = self._word, self._part
        per_character = (part.tokens - word.tokens) / (part.size - word.size)
        return word.tokens + (size - word.size) * per_character


def _test_text(prompt: Prompt, size: int) -> str:
    """Makes a text of a size that is like the instruction, and that no cache contains.

    A short text consists of pieces from the whole instruction, a long one repeats it.
    """
    static = prompt.text[: prompt.static]
    source = static if len(static.strip()) >= _PART[0] // 2 else _PLAIN
    pieces = [source[i : i + _PIECE] for i in range(0, len(source), _PIECE)]
    chosen = pieces[:: max(len(source) // size, 1)]
    repeated = "".join(chosen) * (size // _PIECE + 1)
    return f"{token_hex(4)} {repeated}"[:size]
