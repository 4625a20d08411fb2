from __future__ import annotations

from pathlib import Path

import pytest

DIALOGUE = "0,User: I have been hurting myself again.,confirm_SH_ongoing\n1,User: Hi.,none\n"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Three dialogues, the same one each time."""
    path = tmp_path / "tiny.csv"
    path.write_text("turn_id,text,labels\n" + 3 * DIALOGUE, encoding="utf-8")
    return path
