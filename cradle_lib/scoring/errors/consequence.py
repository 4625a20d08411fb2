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
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.labels import ALL_MASK
from cradle_lib.record import History
from cradle_lib.scoring.core.conventions import Conventions
from cradle_lib.scoring.core.counts import Masks
from cradle_lib.scoring.core.evaluate import signature_of
from cradle_lib.scoring.core.signature import require_comparable, signed
from cradle_lib.scoring.timing.occurrences import first_positions
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.matching import positions
from cradle_lib.statistics.rates import Floats, ratio

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

STATES: Final = ("right", "extra", "lacking", "both")


def consequence(
    runs: Mapping[History, Predictions], *, draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Compares a model's runs with different histories.

    Args:
        runs: Runs of one model over the same dialogues, by history; ``self`` and at least one
            other.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        One row for each state, measure and history.

        - ``system`` (str): the model.
        - ``state`` (str): of :data:`STATES`; ``turns`` (int): user turns in it.
        - ``measure`` (str): ``wrong``, the share of the turns whose tags are not exactly the gold
          labels, or ``change``: that under ``self`` minus that under the history.
        - ``history`` (str): ``self``, ``gold`` or ``none``.
        - ``value``, ``low``, ``high`` (float): the share with its 95 % interval, 0 to 1, of a
          change -1 to 1; NaN for what is undefined or was not computed.

        ``attrs["signature"]`` is what the runs share; it names every history.

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
    signatures = [signature_of(runs[h], Conventions(), draws=draws, seed=seed) for h in histories]
    signature = require_comparable(histories, signatures, about=("history",))
    own = runs["self"]
    gold, n = own.corpus.gold, len(own.corpus)
    state = states(gold, own.masks, own.corpus.dialogue_of, n)
    # An answer that could not be read is wrong, also where there was nothing to tag.
    wrong = [(runs[history].masks != gold) | ~runs[history].ok for history in histories]
    turns = np.stack([np.ones_like(own.ok), *wrong], axis=-1)
    rows = np.zeros((n, len(STATES), turns.shape[-1]), dtype=np.int64)
    np.add.at(rows, (own.corpus.dialogue_of, state), turns)
    found = bootstrap(
        rows,
        lambda t: {"wrong": _wrong(t), "change": _wrong(t)[..., :1] - _wrong(t)},
        draws=draws,
        seed=seed,
    )
    frame = pd.DataFrame(
        {
            "system": own.record.name,
            "state": state,
            "turns": rows[:, i, 0].sum(),
            "measure": measure,
            "history": history,
            **estimate.at(i, j)._asdict(),
        }
        for i, state in enumerate(STATES)
        for measure, estimate in found.items()
        for j, history in enumerate(histories)
        if measure == "wrong" or history != "self"
    )
    return signed(frame, signature)


def states(gold: Masks, own: Masks, dialogue_of: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Says for each of T turns of ``n`` dialogues what was wrong with the tags before it.

    ``own`` are the tags that the history shows. Gives positions in :data:`STATES`. Shape (T,).
    """
    everything = (ALL_MASK,)
    place = positions(dialogue_of)
    extra, lacking = (
        place > first_positions(wrong, dialogue_of, n, everything)[dialogue_of, 0]
        for wrong in (own & ~gold, gold & ~own)
    )
    return np.asarray(extra + 2 * lacking.astype(np.int64))


def _wrong(totals: Floats) -> Floats:
    return ratio(totals[..., 1:], totals[..., :1])
