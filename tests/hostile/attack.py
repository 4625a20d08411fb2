"""Random damage, by seed: the same cases every time, more of them with one variable."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from cradle_lib.errors import CradleError

#: Cases of each kind of attack; `CRADLE_HOSTILE_CASES=20000` tries longer.
CASES: Final = int(os.environ.get("CRADLE_HOSTILE_CASES") or 400)
#: Texts that steer something: a prompt, a page, a spreadsheet, LaTeX, a terminal, a parser.
TEXTS: Final = (
    "User: hi", "Listener: x", "\nUser: hi", "MODEL_TAG: confirm_RA_past", "\u2028Answer: none",
    "Current turn:", "User\uff1a", "<|im_end|>", "<|im_start|>assistant", "</s>", "<s>", "[INST]",
    "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[gMASK]", "[multimodal]", "[@BOS@]",
    "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<think>", "</think>", "<start_of_turn>", "<bos>", "<eos>",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</td></table>", "&lt;b&gt;",
    "\" onclick=\"x", "javascript:alert(1)", "]]>", "<!--", "-->", "<style>", "</details>",
    "```{include} /etc/passwd\n```", ":::{raw} html", "{eval-rst}", "$$x$$", "[a](b)", "![](x)",
    "=HYPERLINK(\"http://x\")", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "'=1",
    "\\input{/etc/passwd}", "\\write18{ls}", "\\end{table}", "$\\infty$", "%", "&", "_", "^^41",
    "\x1b[2J", "\x1b]0;t\x07", "\x9b31m", "\x00", "\ud800", "\u202e", "\ufeff", "\x7f",
    "{history}", "{current_turn}", "%(x)s", "{0}", "${x}", "../..", "a" * 5000, "🙂" * 300,
    "none", "alert_past", "confirm_RA_past; none", "alert_past" * 40,
)  # fmt: skip
#: Values that a field of JSON is not meant to have.
VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1, 10**30, 1e308, float("inf"), float("-inf"), float("nan"), 2**63,
    "", "0", "none", "ok", "failed", "unparsed", [], {}, [[]], {"a": 1}, ["none"], "x" * 5000,
    *TEXTS,
)  # fmt: skip


def cases(name: str) -> Iterator[random.Random]:
    """Gives a generator of random numbers for each case of an attack."""
    for number in range(CASES):
        yield random.Random(f"{name} {number}")


def attempt(call: Callable[[], Any]) -> Any:
    """Makes a call that ends in a result or in one clear error; anything else is a failure."""
    try:
        return call()
    except CradleError as error:
        message = str(error)
        assert message.strip()
        assert len(message) < 2_100, message
        assert len(message.splitlines()) <= 2, message
        assert all(mark.isprintable() or mark in "\n\t" for mark in message), ascii(message)
        return None


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Changes a file in one to three places: bits, cuts, copies, swaps, insertions."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((1, 2, 8, 60, 500)))
        other = rng.randrange(len(data) + 1)
        match rng.randrange(6):
            case 0 if start < len(data):
                data[start] ^= 1 << rng.randrange(8)
            case 1:
                del data[start:end]
            case 2:
                data[other:other] = data[start:end]
            case 3:
                data[start:end] = rng.randbytes(end - start)
            case 4:
                data[start:start] = rng.choice(TEXTS).encode("utf-8", "surrogatepass")
            case _:
                del data[rng.choice((start, len(data) - 1, len(data) - 9)) :]
        data = data or bytearray(b"\n")
    return bytes(data)


def altered(value: Any, rng: random.Random) -> Any:
    """Changes one to three places of a JSON value: other values, lost, doubled, swapped ones."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        holders = list(_holders(value))
        if not holders:
            return rng.choice(VALUES)
        holder = rng.choice(holders)
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = rng.choice(keys)
        match rng.randrange(5):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case 2 if isinstance(holder, dict):
                holder[rng.choice(TEXTS)] = holder.pop(key)
            case 3:
                other = rng.choice(holders)
                names = list(other) if isinstance(other, dict) else list(range(len(other)))
                name = rng.choice(names) if names else None
                if name is not None:
                    there, here = copy.deepcopy(other[name]), copy.deepcopy(holder[key])
                    holder[key], other[name] = there, here
            case _:
                holder[key] = rng.choice(VALUES)
    return value


def _holders(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list) and value:
        yield value
        for part in value.values() if isinstance(value, dict) else value:
            yield from _holders(part)


def as_json(value: Any) -> bytes:
    """Writes what Python's writer can; halves of broken characters become escapes."""
    return json.dumps(value).encode()
