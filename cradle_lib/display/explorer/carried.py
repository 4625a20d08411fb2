"""Files that a page loads, carried by the executed notebook until the build writes them.

They ride in the metadata of an output, so that an executed notebook is all that the book keeps of
a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Key in the metadata of an output: path in the site to content.
CARRIED: Final = "cradle_files"
#: Folder of the site in which the files lie.
FOLDER: Final = "_explorer"


def carried(notebook: Mapping[str, Any]) -> dict[str, str]:
    """Takes the files out of an executed notebook.

    Args:
        notebook: Its content, which is changed.

    Returns:
        Path in the site to content, of all outputs.
    """
    found: dict[str, str] = {}
    for cell in notebook.get("cells", ()):
        for output in cell.get("outputs", ()):
            found |= output.get("metadata", {}).pop(CARRIED, {})
    return found
