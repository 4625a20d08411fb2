"""Which label one annotator gave beside which of the other, paired as tags are with gold."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cradle_lib.annotation.pairs import pairs
from cradle_lib.annotation.table import Annotations
from cradle_lib.scoring.errors.confusion import CELLS, NONE_CELL, confusion


def annotator_confusion(annotations: Annotations) -> pd.DataFrame:
    """Counts the pairs of labels that two annotators gave to the same turns.

    Args:
        annotations: Everybody's; adjudicators and the senior are left out.

    Returns:
        One row for each two annotators who share dialogues and each two labels, those that never
        meet included.

        - ``first``, ``second`` (str): the annotators; ``dialogues`` (int): how many they share.
        - ``one``, ``other`` (categorical): what the first and what the second gave, a name of
          :data:`.CELLS`.
        - ``count`` (int): how often the two meet, over all turns. Turns that both left without a
          label are not counted: they are nearly all turns.

    Raises:
        AnnotationError: If a dialogue does not have two annotators, or there are none.
    """
    frames = []
    for pair in pairs(annotations):
        masks = np.concatenate(pair.masks, axis=1)
        matrix = confusion(masks[0], masks[1])
        matrix[NONE_CELL, NONE_CELL] = 0
        about = {
            "first": pair.first,
            "second": pair.second,
            "dialogues": len(pair.dialogues),
            "one": pd.Categorical(np.repeat(CELLS, len(CELLS)), CELLS),
            "other": pd.Categorical(np.tile(CELLS, len(CELLS)), CELLS),
            "count": matrix.ravel(),
        }
        frames.append(pd.DataFrame(about))
    return pd.concat(frames, ignore_index=True)
