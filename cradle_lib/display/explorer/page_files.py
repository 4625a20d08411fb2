"""Files that a page loads, stored in its executed notebook until the build writes them.

They are in the metadata of an output, so that the executed notebook is the only file that the book
keeps for a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Key in the metadata of an output: path in the site to content.
PAGE_FILES: Final = "cradle_files"
#: Folder of the site with the files.
FOLDER: Final = "_explorer"


def take_page_files(notebook: Mapping[str, Any]) -> dict[str, str]:
    """Removes the files from an executed notebook and returns them.

    Args:
        notebook: Its content, modified in place.

    Returns:
        Path in the site to content, of all outputs.
    """
    found: dict[str, str] = {}
    for cell in notebook.get("cells", ()):
        for output in cell.get("outputs", ()):
            found |= output.get("metadata", {}).pop(PAGE_FILES, {})
    return found
