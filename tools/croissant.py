"""Describes the surrogate in Croissant, the metadata of data sets: ``python -m tools.croissant``.

The description names the checksums of the files, and is made anew after them.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from cradle_lib import paths
from cradle_lib.corpus.load import SPLIT_NAMES, SUMS
from cradle_lib.files import replacing

FILE: Final = paths.SURROGATE / "croissant.json"
_KEYS: Final = (
    "arrayShape",
    "citeAs",
    "column",
    "conformsTo",
    "containedIn",
    "data",
    "dataType",
    "equivalentProperty",
    "examples",
    "extract",
    "field",
    "fileObject",
    "fileProperty",
    "fileSet",
    "format",
    "includes",
    "isArray",
    "isLiveDataset",
    "jsonPath",
    "key",
    "md5",
    "parentField",
    "path",
    "recordSet",
    "references",
    "regex",
    "repeated",
    "replace",
    "samplingRate",
    "separator",
    "source",
    "subField",
    "transform",
)
# What the specification wants beside the name of a key.
_KINDS: Final = {
    "data": {"@type": "@json"},
    "dataType": {"@type": "@vocab"},
    "examples": {"@type": "@json"},
}
_COLUMNS: Final = {
    "turn_id": "Position in the dialogue; a new dialogue starts at 0.",
    "text": "Speaker and what is said; a row without a speaker continues the row above.",
    "labels": "Labels separated by '; ', or none.",
    "split": "Split that the dialogue is in.",
    "dialogue": "Position of the dialogue in its split.",
    "scenario": "Where the conversation takes place, S1 to S7.",
    "timing": "When the crisis is told: early, mid or late.",
    "seed": "Start of the draws that made the dialogue.",
    "voice": "How the user talks.",
    "cases": "Hard cases in the dialogue, separated by '; '.",
}


def describe() -> dict[str, Any]:
    """Makes the description from the files and their checksums."""
    lines = (paths.SURROGATE / SUMS).read_text(encoding="ascii").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    names = [*SPLIT_NAMES, "meta"]
    return {
        "@context": _context(),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "cradle-surrogate",
        "description": (
            "Surrogate of the CRADLE-Dialogue release: dialogues that nobody ever had, written by "
            "a program in the release's format and with its published counts. A score on it says "
            "nothing about a model's worth. For research; not triage, diagnosis or a medical "
            "device."
        ),
        "version": "0.1.0",
        "datePublished": "2026-11-22",
        "inLanguage": "en",
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "url": "https://arxiv.org/abs/2606.10380",
        "citeAs": (
            "The CRADLE compendium contributors: CRADLE-Dialogue research compendium, 2026. The "
            "benchmark: Byun et al., arXiv 2606.10380."
        ),
        "creator": {"@type": "sc:Organization", "name": "The CRADLE compendium contributors"},
        "isLiveDataset": False,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": f"{name}.parquet",
                "name": f"{name}.parquet",
                "contentUrl": f"{name}.parquet",
                "encodingFormat": "application/x-parquet",
                "sha256": sums[f"{name}.parquet"],
            }
            for name in names
        ],
        "recordSet": [_records(name) for name in names],
    }


def _context() -> dict[str, Any]:
    terms = {key: f"cr:{key}" for key in _KEYS}
    typed = {key: {"@id": f"cr:{key}", **more} for key, more in _KINDS.items()}
    own = {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "dct": "http://purl.org/dc/terms/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "sc": "https://schema.org/",
    }
    return own | terms | typed | {"conformsTo": "dct:conformsTo"}


def _records(name: str) -> dict[str, Any]:
    schema = pq.read_schema(paths.SURROGATE / f"{name}.parquet")
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column.name}",
                "name": column.name,
                "description": _COLUMNS[column.name],
                "dataType": "sc:Integer" if pa.types.is_integer(column.type) else "sc:Text",
                "source": {
                    "fileObject": {"@id": f"{name}.parquet"},
                    "extract": {"column": column.name},
                },
            }
            for column in schema
        ],
    }


def main() -> None:
    """Writes the file."""
    with replacing(FILE) as part:
        part.write_text(json.dumps(describe(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
