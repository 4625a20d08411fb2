"""Fetches the real release from the Hugging Face Hub, and reads it.

The data card names no licence, so the release is never committed: it goes to ``data/release/``,
which git ignores. The first fetch pins the revision: it writes the commit of ``main`` to a file in
that folder, and later fetches use that commit. While files are replaced, the folder has a file
``INCOMPLETE``; if it stays, the splits may be of two revisions, and none of them is loaded.
"""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cradle_lib import paths
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.release import (
    COLUMNS,
    build_corpus,
    is_given,
    read_mask,
    read_release,
    whole_number,
)
from cradle_lib.corpus.tables import read_columns, save_table
from cradle_lib.errors import CorpusError
from cradle_lib.files import write_text
from cradle_lib.labels import format_mask

if TYPE_CHECKING:
    import pandas as pd

REPOSITORY: Final = "SungJoo/Cradle-Dialogue"
# Names of the splits here and on the Hub.
SPLITS: Final = {"train": "train", "dev": "validation", "test": "test"}
_PIN: Final = "REVISION"
_INCOMPLETE: Final = "INCOMPLETE"
_CHANGED: Final = "The release has changed. Report it, and name a file as the corpus."
_ACCESS: Final = (
    f"Sign in at huggingface.co/datasets/{REPOSITORY} and accept its conditions, if it shows any; "
    "its owners may have to approve your request. Create a token with read access at "
    "huggingface.co/settings/tokens, run `export HF_TOKEN=...` with it, and run this again."
)


def release_file(split: str, folder: Path = paths.RELEASE) -> Path:
    """Gives the path of a fetched split, which may not exist."""
    return folder / f"{split}.parquet"


def pinned_revision(folder: Path = paths.RELEASE) -> str | None:
    """Reads the commit of the fetched release; ``None`` before the first fetch."""
    pin = folder / _PIN
    return pin.read_text(encoding="utf-8").strip() if pin.is_file() else None


def read_fetched(split: str, folder: Path) -> Corpus:
    """Reads a split of the fetched release.

    Raises:
        CorpusError: If it was not fetched or can't be read, or if a fetch was interrupted while it
            replaced the files.
    """
    path = release_file(split, folder)
    hint = "Run `cradle data fetch`, which says what the Hub lacks."
    if (folder / _INCOMPLETE).exists():
        problem = "a fetch was interrupted, so that the splits may be of two revisions"
        hint = f"Run `cradle data fetch`; after saving all files by hand, remove {_INCOMPLETE}."
    elif path.is_file():
        return read_release(path, f"hub-{split}")
    elif any(release_file(name, folder).is_file() for name in SPLITS):
        problem = f"the release was fetched without its {split} split"
    else:
        problem = "the release has not been fetched"
    raise CorpusError(problem, path=paths.shown(path), hint=hint)


def fetch_release(
    folder: Path = paths.RELEASE,
    revision: str | None = None,
    report: Callable[[str], object] = warnings.warn,
) -> str:
    """Downloads all splits, joins their files, and checks every row by the same rules.

    A dialogue with a row that can't be used is left out, and a split without any dialogue, or that
    the Hub does not have, is not saved; ``report`` is told which rows and splits.

    Args:
        folder: Target folder.
        revision: A commit of the data set; by default the pinned one, or else the current ``main``.
        report: Receives a sentence for each row or split that is left out.

    Returns:
        The commit that was fetched.

    Raises:
        CorpusError: If the Hub can't be reached or refuses access, or no split can be read.
        CradleError: If a file can't be written.
    """
    import httpx2
    import pandas as pd
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import RepositoryNotFoundError

    pinned = pinned_revision(folder)
    wanted = revision or pinned or "main"
    files: dict[str, list[Path]] = {}
    try:
        info = HfApi().dataset_info(REPOSITORY, revision=wanted)
        commit = str(info.sha)
        names = [str(sibling.rfilename) for sibling in info.siblings or []]
        for ours, theirs in SPLITS.items():
            files[ours] = [
                Path(
                    hf_hub_download(
                        REPOSITORY,
                        name,
                        repo_type="dataset",
                        revision=commit,
                        cache_dir=folder / ".hub",
                    )
                )
                for name in _parts(names, theirs, commit)
            ]
    except RepositoryNotFoundError:  # Also if the repository is private or gated.
        raise CorpusError(f"the Hub gives no access to {REPOSITORY}", hint=_ACCESS) from None
    except (httpx2.HTTPError, OSError) as error:  # The Hub's client raises OSErrors.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CorpusError(
            f"can't fetch {REPOSITORY} at {wanted} ({reason[:160]})",
            hint=(
                "With a network, run this again. Without one, download the parquet files of "
                f"huggingface.co/datasets/{REPOSITORY} elsewhere and save them as "
                f"{', '.join(f'{s}.parquet' for s in SPLITS)} in {paths.shown(folder)}, "
                "or pass a file's path as the corpus."
            ),
        ) from None
    tables: dict[str, pd.DataFrame] = {}
    for split, parts in files.items():
        try:
            if not parts:
                raise CorpusError(f"the Hub has no {SPLITS[split]} split at {commit[:12]}")
            rows, faults = _without_faults(parts)
        except CorpusError as error:
            rows, faults = pd.DataFrame(), [error]
        for fault in faults:
            report(str(CorpusError(fault.problem, path=split, row=fault.row, hint=fault.hint)))
        if parts and not len(rows):
            report(f"{split}: not saved, because no dialogue is left.")
        tables[split] = rows
    shutil.rmtree(folder / ".hub", ignore_errors=True)
    if not any(map(len, tables.values())):
        raise CorpusError(f"no split of {REPOSITORY} at {commit[:12]} can be used", hint=_CHANGED)
    incomplete = folder / _INCOMPLETE
    of_another = pinned != commit or incomplete.exists()
    write_text(incomplete, "")
    write_text(folder / _PIN, f"{commit}\n")
    for split, rows in tables.items():
        target = release_file(split, folder)
        if len(rows):
            save_table(rows, target)
        elif of_another:
            target.unlink(missing_ok=True)
    incomplete.unlink()
    return commit


def _parts(names: Sequence[str], split: str, commit: str) -> list[str]:
    """Lists the files of a split, in order; requires all of them, or none."""
    parts = sorted(name for name in names if re.fullmatch(rf"data/{split}[-.].*parquet", name))
    counts = {int(match[1]) for name in parts if (match := re.search(r"-of-(\d+)", name))}
    if counts and counts != {len(parts)}:
        expected = " or ".join(map(str, sorted(counts)))
        raise CorpusError(
            f"{REPOSITORY} at {commit[:12]} has {len(parts)} parquet files for {split}, "
            f"expected {expected}",
            hint=_CHANGED,
        )
    return parts


def _without_faults(parts: Sequence[Path]) -> tuple[pd.DataFrame, list[CorpusError]]:
    """Joins the files of a split, without the dialogues that have a row that can't be used.

    Returns:
        The rows that can be used; and the first error of each left-out dialogue, with its row in
        the joined split.

    Raises:
        CorpusError: If a file can't be read.
    """
    import pandas as pd

    tables = [read_columns(part, COLUMNS) for part in parts]
    rows = [row for table in tables for row in zip(*(table[c] for c in COLUMNS), strict=True)]
    starts = [n for n, (turn, *_) in enumerate(rows) if n == 0 or whole_number(turn) == 0]
    kept, faults = [], []
    for start, end in pairwise([*starts, len(rows)]):
        try:
            build_corpus(rows[start:end], "dialogue")
            kept += rows[start:end]
        except CorpusError as error:
            faults.append(error.located(row=start + (error.row or 0)))
    # Empty cells stay empty, because a dialogue with empty cells only has no gold labels.
    cells = [
        (whole_number(n), text, format_mask(read_mask(cell)) if is_given(cell) else "")
        for n, text, cell in kept
    ]
    return pd.DataFrame(cells, columns=list(COLUMNS)), faults
