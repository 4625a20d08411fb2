"""What a model's own wrong tags did to its later turns.

In the paper's protocol the history shows a model its own earlier tags, and asks it not to tag an
event twice. So a wrong tag can make later turns wrong. Runs of the same model over the same
dialogues with other histories show how much: with ``gold`` the history is never wrong, with
``none`` it shows no tags.

Every user turn is in exactly one state, by what the ``self`` run had tagged on the earlier turns
of the dialogue: ``right`` (exactly the gold labels), ``extra`` (something that is not gold there),
``lacking`` (something gold not tagged), or ``both``. Where the history was right, ``self`` and
``gold`` were asked word for word the same question, so that a difference there is the model's own
randomness; elsewhere it is the consequence of the wrong history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.record import History
from cradle_lib.scoring.comparison.difference import require_comparable
from cradle_lib.scoring.core.conventions import Conventions
from cradle_lib.scoring.core.counts import Masks
from cradle_lib.scoring.core.evaluate import sign
from cradle_lib.scoring.core.scores import Floats, ratio
from cradle_lib.scoring.core.signature import Signature, shared
from cradle_lib.scoring.resampling.bootstrap import Measured, json_estimate, measure
from cradle_lib.scoring.resampling.intervals import DRAWS
from cradle_lib.scoring.timing.occurrences import first_positions, positions

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

STATES: Final = ("right", "extra", "lacking", "both")


@dataclass(frozen=True)
class Consequence:
    """Errors by the state of the history that the ``self`` run had made for itself.

    Attributes:
        system: Name of the model.
        signature: What the runs share; it names every history.
        histories: The histories compared, ``self`` first.
        turns: User turns in each state. Shape (4,).
        wrong: Share of the turns whose tags are not exactly the gold labels, by state and
            history; NaN where there is no turn. Shape (4, H).
        change: The share under ``self`` minus that under each history. Shape (4, H).
    """

    system: str
    signature: Signature
    histories: tuple[History, ...]
    turns: NDArray[np.int64]
    wrong: Measured
    change: Measured

    def to_frame(self) -> pd.DataFrame:
        """Gives the shares of wrong turns as a tidy data frame.

        Returns:
            One row for each state, measure and history.

            - ``system`` (str): the model.
            - ``state`` (str): of :data:`STATES`; ``turns`` (int): user turns in it.
            - ``measure`` (str): ``wrong``, or ``change``: ``self`` minus the history.
            - ``history`` (str): ``self``, ``gold`` or ``none``.
            - ``value``, ``low``, ``high`` (float): the share with its 95 % interval, 0 to 1, of a
              change -1 to 1; NaN for what is undefined or was not computed.

            ``attrs["signature"]`` is the signature.
        """
        frame = pd.DataFrame(
            {
                "system": self.system,
                "state": state,
                "turns": int(self.turns[i]),
                "measure": measure,
                "history": history,
                **measured.estimate(i, j)._asdict(),
            }
            for i, state in enumerate(STATES)
            for measure, measured in (("wrong", self.wrong), ("change", self.change))
            for j, history in self._named
            if measure == "wrong" or history != "self"
        )
        frame = frame.astype({"value": float, "low": float, "high": float})
        frame.attrs["signature"] = str(self.signature)
        return frame

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for strict JSON; what is undefined is ``None``."""
        return {
            state: {
                "turns": int(self.turns[i]),
                "wrong": {h: json_estimate(self.wrong.estimate(i, j)) for j, h in self._named},
                "change": {h: json_estimate(self.change.estimate(i, j)) for j, h in self._named},
            }
            for i, state in enumerate(STATES)
        }

    @property
    def _named(self) -> list[tuple[int, History]]:
        return list(enumerate(self.histories))


def consequence(
    runs: Mapping[History, Predictions], *, draws: int = DRAWS, seed: int = 0
) -> Consequence:
    """Compares a model's runs with different histories.

    Args:
        runs: Runs of one model over the same dialogues, by history; ``self`` and at least one
            other.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        The comparison.

    Raises:
        ScoringError: If ``self`` or every other history is missing, a run is filed under a
            history that is not its own, the runs are of different models, or their
            signatures differ in more than the history.
    """
    if "self" not in runs or len(runs) < 2:
        raise ScoringError(
            f"runs with history {', '.join(runs) or 'none at all'}. The consequence of a wrong "
            "tag needs `self` and at least one of `gold` and `none`."
        )
    histories: tuple[History, ...] = ("self", *(h for h in runs if h != "self"))
    for history in histories:
        record = runs[history].record
        if record.history != history or record.model != runs["self"].record.model:
            raise ScoringError(
                f"a run of {record.model} with history {record.history!r} was given as "
                f"{history!r} of {runs['self'].record.model}. Compare runs of one model."
            )
    signatures = [sign(runs[h], Conventions()) for h in histories]
    require_comparable(histories, signatures, about=("history",))
    own = runs["self"]
    gold, n = own.corpus.gold, len(own.corpus)
    state = states(gold, own.masks, own.corpus.dialogue_of, n)
    cell = len(STATES) * own.corpus.dialogue_of + state

    def per_state(weights: NDArray[np.float64] | None) -> NDArray[np.int64]:
        counted = np.bincount(cell, weights=weights, minlength=n * len(STATES))
        return counted.astype(np.int64).reshape(n, len(STATES))

    columns = [per_state(None)]
    for history in histories:
        run = runs[history]
        # An answer that could not be read is wrong, also where there was nothing to tag.
        columns.append(per_state(((run.masks != gold) | ~run.ok).astype(np.float64)))
    rows = np.stack(columns, axis=-1)
    found = measure(
        rows,
        {"wrong": _wrong, "change": lambda t: _wrong(t)[..., :1] - _wrong(t)},
        draws=draws,
        seed=seed,
    )
    signature = replace(shared(signatures, about=("history",)), draws=draws, seed=seed)
    return Consequence(
        system=own.record.name,
        signature=signature,
        histories=histories,
        turns=rows[..., 0].sum(axis=0),
        wrong=found["wrong"],
        change=found["change"],
    )


def states(gold: Masks, own: Masks, dialogue_of: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Says for each turn what was wrong with the tags before it.

    Args:
        gold: Gold masks. Shape (T,).
        own: The tags that the history shows. Shape (T,).
        dialogue_of: Position of each turn's dialogue, ascending, below ``n``. Shape (T,).
        n: Number of dialogues.

    Returns:
        Positions in :data:`STATES`. Shape (T,).
    """
    everything = (0xFFFF,)
    place = positions(dialogue_of)
    extra, lacking = (
        place > first_positions(wrong, dialogue_of, n, everything)[dialogue_of, 0]
        for wrong in (own & ~gold, gold & ~own)
    )
    return np.asarray(extra + 2 * lacking.astype(np.int64))


def _wrong(totals: Floats) -> Floats:
    return ratio(totals[..., 1:], totals[..., :1])
