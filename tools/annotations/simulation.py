"""Simulates an annotation study that ends in the shipped gold labels, with the published outcomes.

Dialogues are assigned to two teams and two rounds as in the paper. In each group, the number of
dialogues per category of Appendix B.3 is fixed. The dialogues are drawn, with a preference for
passive ideation and alerts. Annotators who agree both give gold. Otherwise, two annotators and an
adjudicator are drawn from a noise model (:mod:`tools.annotations.noise`) until the adjudication
ends in the planned category and in gold. The senior gives gold.

From several such draws for each dialogue, one is selected so that the agreement of each team and
round is in the published range. The agreement is therefore constructed, not observed: it shows
that the measures and the procedure work, and says nothing about clinicians.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cradle_extras.label_studio.study import Assignment, Study, next_assignments, plan_study
from cradle_lib.annotation.table import Annotation, Annotations
from cradle_lib.annotation.voting import Masks, Outcome, decide, outcome_of
from cradle_lib.corpus.dialogue import Corpus, Dialogue
from cradle_lib.errors import CorpusError
from cradle_lib.labels import ALERT_MASK, BITS, LABELS
from cradle_lib.published import published_table
from tools.annotations.noise import CAREFUL, CLEAR, EXPERT, LOOSE, Noise, differ

TEAMS: Final = {"1": ("A", "B"), "2": ("C", "D")}
SENIOR: Final = "S"
SEED: Final = 2606
_DRAWS: Final = 30
_TRIES: Final = 3000
_SWEEPS: Final = 12
_NOISE: Final[Mapping[str, Noise]] = {"1": CAREFUL, "2": LOOSE}
#: Dialogues per outcome for each team and round; columns sum to the published counts.
PLAN: Final[Mapping[tuple[str, int], Mapping[Outcome, int]]] = {
    group: dict(zip(Outcome, counts, strict=True))
    for group, counts in {
        ("1", 1): (105, 25, 2, 8, 10),
        ("1", 2): (103, 26, 2, 8, 11),
        ("2", 1): (58, 40, 4, 16, 32),
        ("2", 2): (57, 41, 3, 16, 33),
    }.items()
}


@dataclass(frozen=True, slots=True)
class _Draw:
    """Two annotations, adjudication and agreement counts (see :func:`_adds`) of one dialogue."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    third: tuple[int, ...] | None
    adds: NDArray[np.int64]


def simulate(corpus: Corpus, seed: int = SEED) -> tuple[Study, Annotations]:
    """Simulates the study on the surrogate's test split.

    Args:
        corpus: The surrogate, with its gold labels.
        seed: Random seed.

    Returns:
        The finished plan and all annotations.

    Raises:
        CorpusError: If the corpus does not have the 600 dialogues of the plan, or an outcome
            can't be reached with its dialogues.
    """
    wanted = sum(sum(counts.values()) for counts in PLAN.values())
    if len(corpus) != wanted:
        raise CorpusError(
            f"{corpus.name} has {len(corpus)} dialogues, the simulation plans {wanted}."
        )
    study = plan_study(corpus, TEAMS, rounds=2, senior=SENIOR, seed=seed)
    groups: dict[tuple[str, int], list[Dialogue]] = {group: [] for group in PLAN}
    for item in study.assignments:
        if item.annotator == TEAMS[item.team][0]:
            groups[item.team, item.round].append(corpus.by_id[item.dialogue])
    entries: list[Annotation] = []
    thirds: dict[str, tuple[int, ...]] = {}
    for number, ((team, round_), dialogues) in enumerate(groups.items()):
        generator = np.random.default_rng([seed, number])
        for dialogue, draw in _group(team, round_, dialogues, generator):
            masks = (draw.first, draw.second)
            entries += [
                Annotation(dialogue.id, name, team, round_, "annotator", own)
                for name, own in zip(TEAMS[team], masks, strict=True)
            ]
            if draw.third is not None:
                thirds[dialogue.id] = draw.third
    for _ in ("adjudicator", "senior"):
        more = next_assignments(study, Annotations.of(corpus, entries))
        study = study.with_assignments(more)
        entries += [
            _of(item, thirds[item.dialogue] if item.role == "adjudicator" else None, corpus.by_id)
            for item in more
        ]
    return study, Annotations.of(corpus, entries)


def _of(
    item: Assignment, masks: tuple[int, ...] | None, by_id: Mapping[str, Dialogue]
) -> Annotation:
    own = masks if masks is not None else _gold(by_id[item.dialogue])
    return Annotation(item.dialogue, item.annotator, item.team, item.round, item.role, own)


def _gold(dialogue: Dialogue) -> tuple[int, ...]:
    return tuple(turn.mask for turn in dialogue.turns)


def _group(
    team: str, round_: int, dialogues: Sequence[Dialogue], generator: np.random.Generator
) -> Iterator[tuple[Dialogue, _Draw]]:
    weights = np.array([_difficulty(dialogue) for dialogue in dialogues])
    order = generator.choice(
        len(dialogues), size=len(dialogues), replace=False, p=weights / weights.sum()
    )
    waiting = [dialogues[i] for i in order]
    options: list[tuple[Dialogue, list[_Draw]]] = []
    plan = PLAN[team, round_]
    # The rarest outcomes are assigned first, because not every dialogue can have every outcome.
    for outcome in sorted(plan, key=lambda o: plan[o] if o != Outcome.EXACT else len(dialogues)):
        left = plan[outcome]
        for dialogue in list(waiting):
            if not left:
                break
            draws = _draws(dialogue, outcome, _NOISE[team], generator)
            if draws:
                options.append((dialogue, draws))
                waiting.remove(dialogue)
                left -= 1
        if left:
            raise CorpusError(f"team {team}, round {round_}: too few dialogues for {outcome}.")
    chosen = _choose([draws for _, draws in options], _Target.of(team, round_), generator)
    for (dialogue, draws), index in zip(options, chosen, strict=True):
        yield dialogue, draws[index]


def _difficulty(dialogue: Dialogue) -> float:
    """Weighs how likely annotators differ: least on labels off user turns, most on passive."""
    if any(turn.mask and not turn.asked for turn in dialogue.turns):
        return 1e-6
    passive = BITS["confirm_SI_passive_ongoing"]
    return 0.4 + 1.5 * bool(dialogue.mask & ALERT_MASK) + 12 * bool(dialogue.mask & passive)


def _draws(
    dialogue: Dialogue, outcome: Outcome, noise: Noise, generator: np.random.Generator
) -> list[_Draw]:
    """Draws annotations with this outcome; fewer than 30 if it is rare, none if impossible."""
    gold = _gold(dialogue)
    if outcome is Outcome.EXACT:
        return [_Draw(gold, gold, None, _adds(gold, gold))]
    found: list[_Draw] = []
    for _ in range(_TRIES):
        one = differ(dialogue, gold, noise, generator)
        two = differ(dialogue, gold, noise, generator)
        if one == two:
            continue
        three = differ(dialogue, gold, EXPERT, generator)
        if outcome_of(one, two, three) is not outcome or decide(one, two, three, gold) != list(
            gold
        ):
            continue
        found.append(_Draw(tuple(one), tuple(two), tuple(three), _adds(one, two)))
        if len(found) == _DRAWS:
            break
    return found


def _adds(one: Masks, two: Masks) -> NDArray[np.int64]:
    """Counts turns, turns that anyone labelled, differing turns, and three cells per label.

    The cells of a label are the turns to which both, only the first and only the second annotator
    gave it.
    """
    adds = np.zeros(3 + 3 * len(LABELS), dtype=np.int64)
    adds[0] = len(one)
    for a, b in zip(one, two, strict=True):
        adds[1] += (a | b) != 0
        adds[2] += a != b
        for index in range(len(LABELS)):
            if (a | b) >> index & 1:
                adds[3 + 3 * index + ((a >> index & 1) + 2 * (b >> index & 1)) % 3] += 1
    return adds


@dataclass(frozen=True)
class _Target:
    """The published ranges for one team and round."""

    exact: float
    kappa: tuple[float, float]
    alerts: tuple[float, float]
    confirms: tuple[float, float]
    passive: float

    @classmethod
    def of(cls, team: str, round_: int) -> _Target:
        """Reads the ranges of the first round; the second has the same, as the paper gives none."""

        def published(key: str) -> float:
            return published_table()[f"annotation.{key}"].value

        return cls(
            exact=published(f"team{team}_round1_exact_match") / 100,
            kappa=(published("kappa_low"), published("kappa_high")),
            alerts=(
                published(f"team{team}_alert_jaccard_low"),
                published(f"team{team}_alert_jaccard_high"),
            ),
            confirms=(
                published(f"team{team}_confirm_jaccard_low"),
                published(f"team{team}_confirm_jaccard_high"),
            ),
            passive=published("si_passive_jaccard"),
        )

    def loss(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """Computes the distance of totals from the ranges. Shape (..., 51) to (...)."""
        turns, units, differing = (totals[..., i] for i in range(3))
        cells = totals[..., 3:].reshape(*totals.shape[:-1], len(LABELS), 3)
        # The index (first + 2 * second) % 3 is 0 for both, 1 for first only, 2 for second only.
        both, either = cells[..., 0], cells.sum(axis=-1)
        jaccard = both / np.maximum(either, 1)
        given = either > 0
        kappa = _kappa(units * len(LABELS), cells.sum(axis=-2))
        exact = 1 - differing / turns
        found = 30 * np.abs(exact - self.exact).clip(0.003) + 10 * _outside(
            kappa, *self.kappa, 0.01
        )
        for index in (0, 1):
            found = found + 3 * given[..., index] * _outside(
                jaccard[..., index], *self.alerts, 0.01
            )
        passive = jaccard[..., LABELS.index("confirm_SI_passive_ongoing")]
        found = found + 3 * np.abs(passive - self.passive).clip(0.02)
        for index in CLEAR:
            low, high = self.confirms
            found = found + given[..., index] * _outside(jaccard[..., index], low, high, 0.0)
        return np.asarray(found)


def _kappa(n: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float64]:
    both, one, other = (cells[..., i] for i in range(3))
    observed = 1 - (one + other) / n
    a, b = (both + one) / n, (both + other) / n
    chance = a * b + (1 - a) * (1 - b)
    return np.asarray((observed - chance) / (1 - chance))


def _outside(
    value: NDArray[np.float64], low: float, high: float, margin: float
) -> NDArray[np.float64]:
    below, above = np.maximum(low + margin - value, 0), np.maximum(value - high + margin, 0)
    return np.asarray(below + above)


def _choose(
    options: Sequence[Sequence[_Draw]], target: _Target, generator: np.random.Generator
) -> list[int]:
    """Selects one draw for each dialogue, by coordinate descent on the loss."""
    stacks = [np.stack([draw.adds for draw in draws]) for draws in options]
    chosen = [int(generator.integers(len(stack))) for stack in stacks]
    totals = np.sum([stack[i] for stack, i in zip(stacks, chosen, strict=True)], axis=0)
    for _ in range(_SWEEPS):
        before = list(chosen)
        for index in generator.permutation(len(stacks)):
            stack = stacks[index]
            rest = totals - stack[chosen[index]]
            chosen[index] = int(np.argmin(target.loss(rest + stack)))
            totals = rest + stack[chosen[index]]
        if chosen == before:
            break
    return chosen
