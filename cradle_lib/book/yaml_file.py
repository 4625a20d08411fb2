"""Reads the book's YAML files and validates them with Pydantic models."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from cradle_lib import strict_yaml
from cradle_lib.errors import BookError
from cradle_lib.validation import faults

Content = TypeVar("Content", bound=BaseModel)


def read_yaml(path: Path, kind: type[Content]) -> Content:
    """Reads and validates a file.

    Raises:
        BookError: If the file can't be read or does not fit the model; names the faults.
    """
    try:
        return kind.model_validate(strict_yaml.read(path))
    except ValidationError as error:
        problem = faults(error, kind, quoted=True)
    except (OSError, ValueError) as error:
        problem = f"can't be read: {error}"
    raise BookError(problem, path=path)
