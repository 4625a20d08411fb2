"""Which published system each model of the registry is, by the model's name on pages."""

from __future__ import annotations

from cradle_lib import bounded_yaml, paths
from cradle_lib.errors import BookError


def published_systems() -> dict[str, str]:
    """Reads the registry as plain data.

    Returns:
        For each model's name the last part of the keys of its published numbers: its entry's
        ``published``, or else its id.

    Raises:
        BookError: If the file can't be read, or is not YAML.
    """
    try:
        entries = bounded_yaml.read(paths.REGISTRY)
    except (OSError, ValueError) as error:
        place = paths.shown(paths.REGISTRY)
        raise BookError(f"{place}: expected a mapping of ids to models ({error})") from None
    models = entries.items() if isinstance(entries, dict) else ()
    return {
        str(model["name"]): str(model.get("published") or key)
        for key, model in models
        if isinstance(model, dict) and "name" in model
    }
