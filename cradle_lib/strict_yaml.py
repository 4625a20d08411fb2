"""Strict YAML: plain values only, no duplicate keys.

Dates are read as text, and ``1e-4`` as a number as in YAML 1.2. Everything else is read as by
PyYAML's safe loader. Callers check the types of the values.
"""

from __future__ import annotations

import re
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml


def read(path: Path) -> Any:
    """Reads a UTF-8 file that contains one YAML document (:func:`load`).

    Raises:
        OSError: If the file can't be read.
        ValueError: As in :func:`load`, or if it is not UTF-8.
    """
    return load(path.read_text(encoding="utf-8"))


def load(text: str) -> Any:
    """Reads one YAML document: plain values, lists and mappings; ``None`` for an empty one.

    Raises:
        ValueError: If it is not YAML, has a duplicate key in a mapping, or a value that can't be
            read. The message is one line with the position.
    """
    return deepcopy(_load(text))


# Cached, because a page asks for the registry a dozen times, which takes 0.1 s each time.
@lru_cache(maxsize=8)
def _load(text: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise ValueError(f"{_explained(error):.200}{place}") from None
    except Exception as error:  # A tag that does not fit its value can raise any exception.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(reason[:200]) from None


def _explained(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem)
    if "\\t" in problem:
        return "a tab. Indent with spaces"
    if problem.startswith("mapping values are not allowed"):
        return (
            "a second colon, or another indentation than above. Put quotes around a text with a "
            "colon, and indent the fields of an entry equally"
        )
    return " ".join(f"{error.context or ''} {problem}".split())


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, changed to reject duplicate keys and to read dates as text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML declares it.
        first: [resolver for resolver in known if not resolver[0].endswith(":timestamp")]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Reads a mapping; a duplicate key is an error."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            name = (key.tag, str(key.value))
            if name in seen:
                line = key.start_mark.line + 1
                raise ValueError(f"{key.value!r:.60} appears twice (line {line})")
            seen.add(name)
        return node


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)
