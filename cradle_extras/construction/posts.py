"""Reads posts: texts with labels for the whole text.

A file has the columns ``id``, ``title`` (optional), ``text`` and ``labels``. Labels are
those of CRADLE Bench (``suicideideation_active_ongoing``), ours (``confirm_SI_active_ongoing``,
``SI_active_ongoing``) or ``no_crisis``, several of them separated by ``;``, ``,`` or ``|``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from cradle_lib import labels, paths
from cradle_lib.arguments import checked
from cradle_lib.corpus.spellings import LONG_NAMES
from cradle_lib.corpus.tables import read_columns
from cradle_lib.errors import CorpusError

SHIPPED: Final = paths.DATA / "posts" / "posts.csv"
_SEPARATORS: Final = re.compile(r"[;,|]")
_NO_CRISIS: Final = frozenset({"", "no_crisis", labels.NONE})


# CRADLE Bench, the post-level ancestor, spells the crisis types out and has no stage.
BENCH_LABELS: Final = {
    f"{name}_{state}": f"confirm_{crisis}_{state}"
    for crisis, name in LONG_NAMES.items()
    for state in labels.TEMPORAL_STATES
}


@dataclass(frozen=True, slots=True)
class Post:
    """One post.

    Attributes:
        id: Unique id.
        title: The title; may be empty.
        text: The text.
        mask: Its confirm labels; 0 for no crisis.
    """

    id: str
    title: str
    text: str
    mask: int

    def __repr__(self) -> str:
        """Names the post; contains no text of it."""
        return f"<Post {self.id}: {len(self.text):,} characters, {labels.format_mask(self.mask)}>"


@dataclass(frozen=True)
class Posts:
    """The posts of one file, in order.

    Attributes:
        name: The file's name without its suffix.
        items: The posts.
        path: The file; ``None`` for the shipped posts, and for posts that are in no file.
    """

    name: str
    items: tuple[Post, ...]
    path: Path | None = None

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Post]:
        return iter(self.items)

    @cached_property
    def by_id(self) -> dict[str, Post]:
        """The posts by their id."""
        return {post.id: post for post in self.items}

    @cached_property
    def fingerprint(self) -> str:
        """Hash of ids, texts and labels: twelve hexadecimal digits."""
        digest = hashlib.sha256()
        for post in self.items:
            row = f"{post.id}\x1f{post.title}\x1f{post.text}\x1f{post.mask}\x1e"
            digest.update(row.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:12]

    def for_plan(self, dialogue: str, post: str) -> Post:
        """Finds the post of a plan.

        Raises:
            CorpusError: If there is none with this id.
        """
        if post not in self.by_id:
            raise CorpusError(
                f"the plan {dialogue} is for post {post!r}, which is not in {self.name}",
                hint="Give the posts that the plans were made for.",
            )
        return self.by_id[post]


@checked
def load_posts(path: str | Path = SHIPPED) -> Posts:
    """Reads posts from a CSV, JSON lines or parquet file.

    Args:
        path: The file; by default the mild posts that this project wrote.

    Returns:
        The posts.

    Raises:
        CorpusError: If the file can't be read or lacks a column; or if a post has no id, no text,
            an unknown label or the id of another post. The message names the row.
    """
    path = Path(path)
    columns = read_columns(path, ("id", "text", "labels"), ("title",))
    if not any(columns.values()):
        raise CorpusError("there are no posts", path=paths.shown(path), hint="Export them again.")
    titles = columns.get("title") or [""] * len(columns["id"])
    rows = zip(columns["id"], titles, columns["text"], columns["labels"], strict=True)
    posts: dict[str, Post] = {}
    for row, (*texts, cell) in enumerate(rows):
        name, title, text = map(_text, texts)
        try:
            if not name or not text:
                raise CorpusError(f"no {'text' if name else 'id'}")
            if name in posts:
                raise CorpusError("the id occurs twice")
            posts[name] = Post(name, title, text, post_mask(cell))
        except CorpusError as error:
            hint = "Correct the post, or remove it."
            problem = f"post {name}: {error}"
            raise CorpusError(problem, path=paths.shown(path), row=row, hint=hint) from None
    return Posts(path.stem, tuple(posts.values()), None if path == SHIPPED else path.resolve())


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value).strip()


def post_mask(cell: Any) -> int:
    """Converts a post's labels, a text or a list, to a mask of confirms; ``no_crisis`` is 0.

    Raises:
        CorpusError: If a label is unknown, or is an alert, which only turns have.
    """
    names = cell if isinstance(cell, list) else _SEPARATORS.split(_text(cell))
    mask = 0
    for name in (str(n).strip() for n in names):
        if name.lower() not in _NO_CRISIS:
            mask |= _label_mask(name)
    return mask


def _label_mask(name: str) -> int:
    lower = name.lower().removeprefix("confirm_")
    if lower.startswith("alert_"):
        raise CorpusError(f"{name!r} is a label of turns, not of posts.")
    return labels.BITS[labels.find(BENCH_LABELS.get(lower, f"confirm_{lower}"))]
