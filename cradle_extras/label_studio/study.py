"""Plans an annotation study: teams of two, rounds, an adjudicator and a senior annotator.

The assignments of a study state who labels which dialogue, so that an import can find missing
annotations. The plan is stored as ``study.json`` next to the tasks.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.2 and Appendix B.2: two disjoint teams of
    two, two rounds, 150 dialogues a team and round; the adjudicator comes from the other
    team.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cradle_lib import strict_json
from cradle_lib.annotation.adjudication import open_turns, voters_of
from cradle_lib.annotation.table import ROLES, Annotations, Role
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.errors import CorpusError
from cradle_lib.files import write_text
from cradle_lib.validation import faults


class Assignment(BaseModel):
    """Assigns one dialogue to one person.

    Attributes:
        dialogue: Id of the dialogue.
        team: Team of the dialogue; an adjudicator is from another team.
        round: Round of the dialogue, from 1.
        role: Role of the person.
        annotator: Name of the person.
        turns: Numbers of the disputed turns, for an adjudicator or the senior.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dialogue: str
    team: str
    round: int = Field(ge=1)
    role: Role
    annotator: str
    turns: tuple[int, ...] = ()


class Study(BaseModel):
    """The plan of an annotation.

    Attributes:
        corpus: Name of the corpus.
        texts: Fingerprint of its texts.
        teams: The two members of each team.
        senior: Name of the annotator who decides last.
        assignments: All assignments so far.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    corpus: str
    texts: str
    teams: dict[str, tuple[str, str]]
    senior: str
    assignments: tuple[Assignment, ...]

    def with_assignments(self, more: Iterable[Assignment]) -> Study:
        """Adds assignments that the plan does not have yet."""
        every = tuple(dict.fromkeys((*self.assignments, *more)))
        return self.model_copy(update={"assignments": every})

    def until(self, round_: int) -> Study:
        """Gives the plan of the first rounds, to import them before the next one is labelled."""
        kept = tuple(item for item in self.assignments if item.round <= round_)
        return self.model_copy(update={"assignments": kept})

    def save(self, path: Path) -> None:
        """Writes the plan atomically."""
        head = self.model_dump(mode="json", exclude={"assignments"})
        lines = (json.dumps(a.model_dump(mode="json")) for a in self.assignments)
        # One line for each assignment, so that diffs are readable.
        text = json.dumps(head, indent=1)[:-2] + ',\n "assignments": [\n' + ",\n".join(lines)
        write_text(path, text + "\n]}\n")

    @classmethod
    def load(cls, path: Path) -> Study:
        """Reads a plan.

        Raises:
            CorpusError: If it is missing, unreadable or malformed.
        """
        hint = "`cradle annotate export` writes the plan of a study; --study names its folder."
        try:
            return cls.model_validate(read_json(path, hint))
        except ValidationError as error:
            raise CorpusError(faults(error, cls, quoted=True), path=path) from None

    def check(self, corpus: Corpus) -> None:
        """Refuses a corpus with other texts than the one that was exported."""
        found = corpus.texts_fingerprint
        if found != self.texts:
            raise CorpusError(
                f"the study was made on {self.corpus} (texts {self.texts}), {corpus.name} has "
                f"texts {found}. Name the corpus that was exported."
            )


def plan_study(
    corpus: Corpus,
    teams: Mapping[str, Sequence[str]],
    *,
    rounds: int = 2,
    senior: str = "senior",
    seed: int = 0,
) -> Study:
    """Assigns every dialogue to one team and one round, evenly and at random.

    Args:
        corpus: The dialogues.
        teams: Name of each team, and its two members. One team is enough to measure agreement;
            adjudication needs two.
        rounds: Number of rounds, at least 1.
        senior: Name of the senior.
        seed: Seed of the shuffle.

    Returns:
        The plan; group sizes differ by at most one dialogue.

    Raises:
        CorpusError: If a team does not have two members, somebody is in two teams, there is no
            team or no round, a name is empty, or two names would give the same file name.
    """
    people = [*(name for members in teams.values() for name in members), senior]
    if rounds < 1 or not teams or any(len(members) != 2 for members in teams.values()):
        raise CorpusError("a study needs a round, and one or more teams of two people each.")
    files = Counter(file_name(name).casefold() for name in people)
    if clash := [name for name in people if not name or files[file_name(name).casefold()] > 1]:
        raise CorpusError(
            f"{', '.join(clash)}: teams and senior must be different people, whose names are not "
            "empty and differ in letters or digits, not only in case or signs."
        )
    groups = [(team, number) for number in range(1, rounds + 1) for team in teams]
    order = np.random.default_rng(seed).permutation(len(corpus))
    assignments = []
    for dialogue, place in zip(corpus, np.argsort(order), strict=True):
        team, number = groups[place % len(groups)]
        assignments += [
            Assignment(
                dialogue=dialogue.id, team=team, round=number, role="annotator", annotator=name
            )
            for name in teams[team]
        ]
    return Study(
        corpus=corpus.name,
        texts=corpus.texts_fingerprint,
        teams={team: (members[0], members[1]) for team, members in teams.items()},
        senior=senior,
        assignments=tuple(assignments),
    )


def read_json(path: Path, hint: str) -> Any:
    """Reads a JSON file from an untrusted source, gzipped if its name ends in ``.gz``.

    Raises:
        CorpusError: If it is missing, unreadable, truncated, or not JSON.
    """
    try:
        content = path.read_bytes()
        return strict_json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0][:120]
        raise CorpusError(f"can't be read ({reason})", path=path, hint=hint) from None


def file_name(person: str) -> str:
    """Converts a person's name to a part of file names."""
    return "".join(c if c.isalnum() else "_" for c in person)


def next_assignments(study: Study, annotations: Annotations) -> tuple[Assignment, ...]:
    """Assigns the dialogues that need an adjudicator or the senior after the annotations so far.

    A dialogue on which its two annotators differ goes to another team, alternating between its
    members. A dialogue that its three votes do not decide goes to the senior. Assignments that are
    in the plan are returned unchanged. The result is empty if everything is decided.

    Raises:
        CorpusError: If a dialogue does not have two annotators, its team is not in the plan, or
            there is no other team to adjudicate it.
    """
    names = list(study.teams)
    given = Counter(a.annotator for a in study.assignments if a.role == "adjudicator")
    planned = {(a.dialogue, a.role): a for a in study.assignments}
    more = []
    for dialogue, entries in annotations.by_dialogue.items():
        voters = voters_of(entries)
        turns = open_turns(voters)
        if not turns:
            continue
        team, number, role = entries[0].team, entries[0].round, ROLES[len(voters) - 1]
        if team not in study.teams:
            raise CorpusError(
                f"dialogue {dialogue}: team {team} is not in the plan, whose teams are "
                f"{', '.join(names)}. Name the table and the study that belong together."
            )
        if (dialogue, role) not in planned:
            who = study.senior
            if role == "adjudicator":
                if len(names) < 2:
                    raise CorpusError(
                        f"dialogue {dialogue}: its annotators differ, and a person of another team "
                        "must decide, but the study has one team. Its agreement can be measured."
                    )
                other = study.teams[names[(names.index(team) + 1) % len(names)]]
                who = min(other, key=lambda name: (given[name], name))
                given[who] += 1
            planned[dialogue, role] = Assignment(
                dialogue=dialogue, team=team, round=number, role=role, annotator=who, turns=turns
            )
        more.append(planned[dialogue, role])
    return tuple(more)
