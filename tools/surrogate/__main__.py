"""Generates the surrogate corpus: ``python -m tools.surrogate``; the same bytes every time.

With arguments it runs the commands for the written dialogues (:mod:`commands`).

The plans match every published count. The construction pipeline writes the text, with the phrase
bank as its writer.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.4 for the counts of the test split,
    Appendix D.1 for those of train and dev.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from cradle_extras.construction.plan import Plan
from cradle_extras.construction.validators.checks import check_draft, rejecting
from cradle_extras.construction.validators.draft import Draft
from cradle_extras.construction.validators.rules import Case
from cradle_extras.construction.writers.bank import Bank
from cradle_extras.construction.writers.phrase_bank import Ledger, PhraseBank
from cradle_extras.construction.writers.script import Mix
from cradle_lib import paths
from cradle_lib.corpus.load import SUMS
from cradle_lib.errors import CorpusError
from cradle_lib.files import replacing
from tools.surrogate.annotated import plan_annotated
from tools.surrogate.commands import run
from tools.surrogate.generated import plan_generated

SEED: Final = 2606
SPLITS: Final = ("train", "dev", "test")
NOTICE: Final = "surrogate, written by this project, CC BY 4.0"

# In the training dialogues, people say plainly what is wrong. In the test split, as in the
# annotated release, they say it less plainly, and more turns sound like a crisis without being one,
# or repeat a crisis that is already disclosed.
_GENERATED: Final = Mix(
    familiar=1.0, hard=0.15, vague=0.1, distract=0.25, alike=0.2, after=0.45, hint=0.05, retell=0.05
)
_ANNOTATED: Final = Mix(
    familiar=0.0, hard=0.8, vague=0.7, distract=0.4, alike=0.7, after=0.75, hint=0.35, retell=0.35
)
MIXES: Final = {"train": _GENERATED, "dev": _GENERATED, "test": _ANNOTATED}


def build_surrogate(out: Path = paths.SURROGATE, phrases: Path = paths.PHRASES) -> None:
    """Writes ``train``, ``dev``, ``test`` and ``meta`` as parquet files, and their checksums.

    Args:
        out: Folder for the four files; created if it is missing.
        phrases: Folder with the phrase bank.

    Raises:
        CorpusError: If the phrase bank has an invalid format or is too small, or a validator
            rejects a dialogue.
    """
    bank = Bank.load(phrases)
    test = Ledger()
    made = {"test": _write("test", bank, test)}
    for split in ("dev", "train"):
        # Train and dev reuse no sentence of test.
        made[split] = _write(split, bank, Ledger(other=test))
    for split in SPLITS:
        turns, texts, labels = zip(*made[split][0], strict=True)
        columns = {"turn_id": turns, "text": texts, "labels": labels}
        _save_table(columns, out / f"{split}.parquet")
    meta = [row for split in SPLITS for row in made[split][1]]
    _save_table({name: [row[name] for row in meta] for name in meta[0]}, out / "meta.parquet")
    sums = (
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(out.glob("*.parquet"))
    )
    with replacing(out / SUMS) as part:
        part.write_text("".join(sums), encoding="ascii")


def plan_split(split: str) -> list[Plan]:
    """Plans the dialogues of a split."""
    rng = random.Random(f"{SEED} {split} plan")
    return plan_annotated(rng) if split == "test" else plan_generated(split, rng)


def _write(
    split: str, bank: Bank, ledger: Ledger
) -> tuple[list[tuple[int, str, str]], list[dict[str, Any]]]:
    test, mix = split == "test", MIXES[split]
    writer = PhraseBank(bank, mix, seed=f"{SEED} {split}", test=test, ledger=ledger)
    rows, meta = [], []
    for plan in plan_split(split):
        own = writer.dialogue_seed(plan.dialogue)
        lines, cases = writer.write(plan, own)
        draft = Draft(tuple(lines))
        if found := rejecting(check_draft(Case(draft, plan.kind, plan, None))):
            raise CorpusError(f"{split} {plan.dialogue}: {found[0].validator}: {found[0].words}")
        rows += draft.rows()
        meta.append(
            {
                "split": split,
                "dialogue": int(plan.dialogue),
                "scenario": plan.scenario,
                "timing": plan.timing,
                "seed": own,
                "voice": plan.voice,
                "cases": "; ".join(cases),
            }
        )
    return rows, meta


def _save_table(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Writes columns to a parquet file; the same columns give the same bytes."""
    fields = [
        (name, pa.int64() if isinstance(cells[0], int) else pa.string())
        for name, cells in columns.items()
    ]
    schema = pa.schema(fields).with_metadata({"notice": NOTICE})
    with replacing(path) as part:
        pq.write_table(
            pa.Table.from_pydict(columns, schema=schema),
            part,
            version="2.6",
            compression="zstd",
            compression_level=19,
            use_dictionary=["labels"] if "labels" in columns else False,
            row_group_size=1 << 20,
            data_page_version="1.0",
        )


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(run(sys.argv[1:]))
    build_surrogate()
