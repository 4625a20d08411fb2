"""A recipe: everything that shapes a training, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cradle_extras.errors import first_fault
from cradle_lib import paths, strict_yaml
from cradle_lib.errors import EngineError
from cradle_lib.files import visible_files

SHIPPED: Final = Path(__file__).parent / "recipes"
_PROJECTIONS: Final = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AdapterSettings(_Strict):
    """A low-rank adapter (LoRA): what is trained while the base stays as it is.

    Attributes:
        rank: Rank of each change.
        alpha: The change is multiplied by ``alpha / rank``.
        layers: Only so many upper layers get one; ``None`` for all.
        targets: Names of the projections that get one.
    """

    rank: Annotated[int, Field(ge=1)] = 16
    alpha: Annotated[int, Field(ge=1)] = 32
    layers: Annotated[int, Field(ge=1)] | None = None
    targets: tuple[str, ...] = _PROJECTIONS


class Recipe(_Strict):
    """How a model is trained. Each process sees one dialogue at a time.

    Attributes:
        prompt: Name of the prompt template; one whose current turn is the last line of the
            history makes a dialogue one sequence.
        epochs: Passes over the dialogues.
        dialogues: Only so many, chosen by the seed; ``None`` for all.
        max_length: Most tokens in a turn's prompt and answer; later turns are left out.
        accumulation: Dialogues of each process before a step.
        learning_rate: Its peak; it falls linearly to 0.
        warmup: Share of the steps in which it rises.
        weight_decay: Of AdamW.
        label_weight: How often a turn with a label counts.
        dtype: Number format of the base, and of the computation.
        adapter: ``None`` trains all weights.
        seed: Of the choice and order of dialogues and the first weights of the adapter.
        save_steps: Steps between checkpoints; ``None`` for one after each epoch only.
        dev_dialogues: So many of the dev split, drawn evenly from scenarios and timings, answer
            for a checkpoint; ``None`` for all.
    """

    prompt: str = "append"
    epochs: Annotated[int, Field(ge=1)] = 3
    dialogues: Annotated[int, Field(ge=1)] | None = None
    max_length: Annotated[int, Field(ge=16)] = 4096
    accumulation: Annotated[int, Field(ge=1)] = 16
    learning_rate: Annotated[float, Field(gt=0)] = 5e-6
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    label_weight: Annotated[float, Field(gt=0)] = 1.0
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    adapter: AdapterSettings | None = None
    seed: int = 0
    save_steps: Annotated[int, Field(ge=1)] | None = None
    dev_dialogues: Annotated[int, Field(ge=1)] | None = None


def recipe_names() -> list[str]:
    """Lists the recipes that ship."""
    return sorted(path.stem for path in visible_files(SHIPPED, "*.yml") if "." not in path.stem)


def load_recipe(name: str | Path) -> Recipe:
    """Reads a recipe.

    Args:
        name: One that ships, such as ``paper``, or a YAML file.

    Returns:
        The recipe.

    Raises:
        EngineError: If there is none, or it has a field that is unknown or out of range.
    """
    path = SHIPPED / f"{name}.yml" if str(name) in recipe_names() else Path(name)
    try:
        return Recipe.model_validate(strict_yaml.read(path))
    except FileNotFoundError:
        known = ", ".join(recipe_names())
        raise EngineError(
            f"no recipe {str(name)!r}. There are {known}; or name a YAML file with such fields."
        ) from None
    except ValidationError as error:
        raise EngineError(f"{paths.shown(path)}: {first_fault(error)}") from error
    except (OSError, ValueError) as error:
        raise EngineError(f"{paths.shown(path)}: can't be read as YAML ({error})") from error
