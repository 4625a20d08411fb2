"""Decides who is the User and who the Listener: by usual names, or as the user says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from cradle_lib.corpus.speakers import ROLES, key
from cradle_lib.corpus.tables import brief
from cradle_lib.errors import CorpusError


def find_roles(
    rows: pd.DataFrame, given: Mapping[str | None, Sequence[str]]
) -> dict[str, str | None]:
    """Decides who is the User and who the Listener.

    Args:
        rows: The messages, with the columns ``row``, ``speaker`` and ``key``.
        given: Names that the user gave for a role, or for no role: to be left out.

    Returns:
        The role of each speaker; ``None`` for a speaker who is left out.

    Raises:
        CorpusError: If it is not clear.
    """
    counts = Counter(rows["key"])
    first = rows.drop_duplicates("key").set_index("key")
    shown = ", ".join(f"{first['speaker'][name]} ({n:,})" for name, n in counts.most_common(8))
    roles: dict[str, str | None] = {}
    for role, own in given.items():
        for name in own:
            if key(name) not in counts or roles.setdefault(key(name), role) != role:
                problem = f"{brief(name)} is no speaker, or has two roles"
                raise CorpusError(f"{problem}; found {shown}")
    rest = [name for name in counts if name not in roles]
    free = {*ROLES.values()} - {*roles.values()}
    # If one speaker and one role are left, the speaker has that role.
    other = next(iter(free)) if len(free) == len(rest) == 1 else None
    usual = {name: ROLES.get(name, other) for name in rest}
    times = Counter(usual.values())
    unknown = [name for name, role in usual.items() if role not in free or times[role] > 1]
    if unknown or "User" not in (roles | usual).values():
        unclear = "nobody is the User"
        if unknown:
            unclear = f"can't tell if {' or '.join(first['speaker'][unknown])} is User or Listener"
        raise CorpusError(
            f"{unclear:.200}; found {shown or 'no message'}",
            row=first["row"][unknown[0]] if unknown else None,
            hint="Say who is who: --user NAME, --listener NAME or --leave-out NAME; each may be "
            "given several times.",
        )
    return roles | usual
