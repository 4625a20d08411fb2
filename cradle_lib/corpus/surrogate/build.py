"""Builds the surrogate corpus: the same bytes from the same phrases, every time.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.4 for the counts of the test split,
    Appendix D.1 for those of train and dev.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from cradle_lib import paths
from cradle_lib.corpus.surrogate.bank import Bank
from cradle_lib.corpus.surrogate.plan import Plan
from cradle_lib.corpus.surrogate.plan_annotated import plan_annotated
from cradle_lib.corpus.surrogate.plan_generated import plan_generated
from cradle_lib.corpus.surrogate.script import LABELLED, MIXES, Mix
from cradle_lib.corpus.surrogate.writer import Decks, Ledger, Writer, Written
from cradle_lib.labels import format_mask

SEED: Final = 2606
SPLITS: Final = ("train", "dev", "test")
NOTICE: Final = "surrogate, written by this project, CC BY 4.0"

_ROWS: Final = pa.schema([("turn_id", pa.int64()), ("text", pa.string()), ("labels", pa.string())])
_META: Final = pa.schema(
    [
        ("split", pa.string()),
        ("dialogue", pa.int64()),
        ("scenario", pa.string()),
        ("timing", pa.string()),
        ("seed", pa.int64()),
        ("voice", pa.string()),
        ("cases", pa.string()),
    ]
)

Dialogues = list[tuple[Plan, int, Written]]


def build_surrogate(
    out: Path = paths.SURROGATE,
    phrases: Path = paths.PHRASES,
    seed: int = SEED,
    mixes: Mapping[str, Mix] = MIXES,
) -> None:
    """Writes ``train``, ``dev``, ``test`` and ``meta`` as parquet files.

    Args:
        out: Folder for the four files; made if it is missing.
        phrases: Folder with the phrase bank.
        seed: Start of all choices. The shipped files come from the default.
        mixes: How hard each split is; by default as in the shipped files.

    Raises:
        CorpusError: If the phrase bank breaks its format or is too small.
    """
    splits = write_dialogues(Bank.load(phrases), seed, mixes)
    out.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        _save(_table(splits[split]), out / f"{split}.parquet")
    _save(_meta(splits), out / "meta.parquet")


def write_dialogues(bank: Bank, seed: int, mixes: Mapping[str, Mix]) -> dict[str, Dialogues]:
    """Plans and writes all three splits.

    The test split comes first: train and dev are kept apart from what it says.

    Args:
        bank: The phrase bank.
        seed: Start of all choices.
        mixes: How hard each split is.

    Returns:
        For each split the plan, seed and words of every dialogue, in order.
    """
    test = Ledger()
    found = {"test": _write("test", bank, test, seed, mixes["test"])}
    for split in ("dev", "train"):
        apart = Ledger(
            elsewhere=frozenset(test.counts), elsewhere_labelled=frozenset(test.labelled)
        )
        found[split] = _write(split, bank, apart, seed, mixes[split])
    return found


def _write(split: str, bank: Bank, ledger: Ledger, seed: int, mix: Mix) -> Dialogues:
    rng = random.Random(f"{seed} {split} plan")
    plans = plan_annotated(rng) if split == "test" else plan_generated(split, rng)
    bank = bank.parted(LABELLED, test=split == "test")
    decks = Decks(bank, test=split == "test", mix=mix, seed=f"{seed} {split}")
    writer = Writer(bank, ledger, decks, mix)
    found = []
    for plan in plans:
        own = _seed(seed, split, plan.index)
        found.append((plan, own, writer.write(plan, str(own))))
    return found


def _seed(seed: int, split: str, index: int) -> int:
    digest = hashlib.blake2b(f"{seed} {split} {index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _table(dialogues: Dialogues) -> pa.Table:
    rows = [
        {"turn_id": turn, "text": text, "labels": format_mask(mask)}
        for _, _, written in dialogues
        for turn, (text, mask) in enumerate(zip(written.texts, written.masks, strict=True))
    ]
    return pa.Table.from_pylist(rows, schema=_ROWS)


def _meta(splits: dict[str, Dialogues]) -> pa.Table:
    rows = [
        {
            "split": split,
            "dialogue": plan.index,
            "scenario": plan.scenario,
            "timing": plan.timing,
            "seed": own,
            "voice": plan.voice,
            "cases": "; ".join(written.cases),
        }
        for split in SPLITS
        for plan, own, written in splits[split]
    ]
    return pa.Table.from_pylist(rows, schema=_META)


def _save(table: pa.Table, path: Path) -> None:
    noted = table.replace_schema_metadata({"notice": NOTICE})
    temporary = path.with_suffix(".parquet.tmp")
    pq.write_table(
        noted,
        temporary,
        version="2.6",
        compression="zstd",
        compression_level=19,
        use_dictionary=["labels"] if "labels" in table.column_names else False,
        row_group_size=1 << 20,
        data_page_version="1.0",
    )
    os.replace(temporary, path)
