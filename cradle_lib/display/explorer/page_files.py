"""Files that a page loads: part of the executed notebook until the build writes them.

The metadata of an output contains them, so that an executed notebook is all that the book keeps of
a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Key in the metadata of an output: path in the site to content.
PAGE_FILES: Final = "cradle_files"
#: Folder of the site with the files.
FOLDER: Final = "_explorer"


def take_page_files(notebook: Mapping[str, Any]) -> dict[str, str]:
    """Takes the files out of an executed notebook.

    Args:
        notebook: Its content, which is changed.

    Returns:
        Path in the site to content, of all outputs.
    """
    found: dict[str, str] = {}
    for cell in notebook.get("cells", ()):
        for output in cell.get("outputs", ()):
            found |= output.get("metadata", {}).pop(PAGE_FILES, {})
    return found
