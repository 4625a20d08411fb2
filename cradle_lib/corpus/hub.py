"""Fetches the real release from the Hugging Face Hub.

The data card names no licence, so the release is never committed: it goes to ``data/release/``,
which git ignores. The first fetch pins the revision: it writes the commit of ``main`` to a file in
that folder, and later fetches use that commit.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.corpus.release import read_release
from cradle_lib.errors import CorpusError
from cradle_lib.files import replacing, write_text

REPOSITORY: Final = "SungJoo/Cradle-Dialogue"
# Names of the splits here and on the Hub.
SPLITS: Final = {"train": "train", "dev": "validation", "test": "test"}
_PIN: Final = "REVISION"


def release_file(split: str, folder: Path = paths.RELEASE) -> Path:
    """Gives the path of a fetched split, which may not exist."""
    return folder / f"{split}.parquet"


def pinned_revision(folder: Path = paths.RELEASE) -> str | None:
    """Reads the commit of the fetched release; ``None`` before the first fetch."""
    pin = folder / _PIN
    return pin.read_text(encoding="utf-8").strip() if pin.is_file() else None


def fetch_release(folder: Path = paths.RELEASE, revision: str | None = None) -> str:
    """Downloads all splits.

    Args:
        folder: Target folder.
        revision: A commit of the data set; by default the pinned one, or else the current ``main``.

    Returns:
        The commit that was fetched.

    Raises:
        CorpusError: If the Hub can't be reached, does not have the files, or sent files that can't
            be read.
        CradleError: If a file can't be written.
    """
    import httpx2
    from huggingface_hub import HfApi, hf_hub_download

    wanted = revision or pinned_revision(folder) or "main"
    try:
        info = HfApi().dataset_info(REPOSITORY, revision=wanted)
        commit = str(info.sha)
        names = [str(sibling.rfilename) for sibling in info.siblings or []]
        for ours, theirs in SPLITS.items():
            parts = [n for n in names if n.startswith(f"data/{theirs}-") and n.endswith(".parquet")]
            if len(parts) != 1:
                raise CorpusError(
                    f"{REPOSITORY} at {commit[:12]} has {len(parts)} parquet files for {theirs}, "
                    "expected 1",
                    hint="The release has changed. Report it, and name a file as the corpus.",
                )
            cached = hf_hub_download(
                REPOSITORY,
                parts[0],
                repo_type="dataset",
                revision=commit,
                cache_dir=folder / ".hub",
            )
            read_release(cached)
            with replacing(release_file(ours, folder)) as part:
                shutil.copyfile(cached, part)
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
    shutil.rmtree(folder / ".hub", ignore_errors=True)
    write_text(folder / _PIN, f"{commit}\n")
    return commit
