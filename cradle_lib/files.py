"""How a file is put in its place: whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cradle_lib.errors import CradleError, compose


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary name to write to, which takes the file's place when all went well.

    Args:
        path: The file. Missing folders above it are made.

    Yields:
        The temporary name, in the same folder. Nothing stays under it if anything goes wrong.

    Raises:
        CradleError: If the system doesn't let the file be written there.
    """
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(path)
    except OSError as error:
        problem = f"can't be written ({error.strerror or error})"
        hint = "Name another place, or make room for it there."
        raise CradleError(compose(problem, path=path, hint=hint)) from None
    finally:
        with suppress(OSError):
            part.unlink()
