"""Recipes: all settings of a training, in a YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cradle_lib import paths, strict_yaml
from cradle_lib.arguments import checked
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.errors import EngineError
from cradle_lib.files import visible_files
from cradle_lib.validation import faults

SHIPPED: Final = Path(__file__).parent / "recipes"
_PROJECTIONS: Final = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AdapterSettings(_Strict):
    """A low-rank adapter (LoRA), trained while the base weights are frozen.

    Attributes:
        rank: Rank of each update.
        alpha: Updates are scaled by ``alpha / rank``.
        layers: Number of upper layers that are adapted; ``None`` for all.
        targets: Names of the projections that are adapted.
    """

    rank: Annotated[int, Field(ge=1)] = 16
    alpha: Annotated[int, Field(ge=1)] = 32
    layers: Annotated[int, Field(ge=1)] | None = None
    targets: tuple[str, ...] = _PROJECTIONS


class Recipe(_Strict):
    """Settings of a training. The batch of each process is one dialogue.

    Attributes:
        prompt: Name of the prompt template; if its current turn is the last line of the history,
            the turns of a dialogue share nearly all tokens.
        epochs: Passes over the dialogues.
        dialogues: Number of training dialogues, chosen at random; ``None`` for all.
        extra: File in the release's format whose dialogues are learned as well, all of them;
            relative to the working directory, or else to this repository.
        crop: Share of the dialogues that lose a beginning of random length, so that a disclosure
            may be on the first turn, as in no complete training dialogue.
        max_length: Maximum number of tokens in a turn's prompt and answer; the first longer turn
            of a dialogue and all turns after it are left out.
        accumulation: Dialogues of each process per optimizer step.
        learning_rate: Peak learning rate; it decays linearly to 0.
        warmup: Share of the steps in which the learning rate rises.
        weight_decay: Weight decay of AdamW.
        label_weight: Weight of the loss on turns with a label; other turns have weight 1.
        dtype: Number format of the computation, and of weights that are not trained.
        gradient_checkpointing: Whether activations within a layer are computed again for the
            gradients instead of being kept. Changes the memory and time of a training, not its
            result.
        adapter: ``None`` trains all weights.
        seed: Seed of the choice, order and cropping of dialogues, and of the adapter's initial
            weights.
        save_steps: Steps between checkpoints; ``None`` for one after each epoch only.
        dev_dialogues: Number of dev dialogues on which checkpoints are scored, stratified by
            scenario and timing; ``None`` for all.
    """

    prompt: str = "append"
    epochs: Annotated[int, Field(ge=1)] = 3
    dialogues: Annotated[int, Field(ge=1)] | None = None
    extra: Annotated[str, Field(min_length=1)] | None = None
    crop: Annotated[float, Field(ge=0, le=1)] = 0.0
    max_length: Annotated[int, Field(ge=16)] = 4096
    accumulation: Annotated[int, Field(ge=1)] = 16
    learning_rate: Annotated[float, Field(gt=0)] = 5e-6
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    label_weight: Annotated[float, Field(gt=0)] = 1.0
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    gradient_checkpointing: bool = False
    adapter: AdapterSettings | None = None
    seed: int = 0
    save_steps: Annotated[int, Field(ge=1)] | None = None
    dev_dialogues: Annotated[int, Field(ge=1)] | None = None

    @property
    def base_dtype(self) -> str:
        """Number format in which the base is loaded.

        Trained weights are kept in float32: most updates are too small to change a number in
        bfloat16. The computation uses copies in ``dtype``. Adapters are always in float32.
        """
        return "float32" if self.adapter is None else self.dtype


def recipe_names() -> list[str]:
    """Lists the shipped recipes."""
    return sorted(path.stem for path in visible_files(SHIPPED, "*.yml") if "." not in path.stem)


@checked
def load_recipe(name: str | Path) -> Recipe:
    """Reads a recipe.

    Args:
        name: Name of a shipped recipe, such as ``paper``, or path of a YAML file.

    Returns:
        The recipe.

    Raises:
        EngineError: If there is none, it can't be read, or a field is unknown or out of range.
    """
    path = SHIPPED / f"{name}.yml" if str(name) in recipe_names() else Path(name)
    try:
        return Recipe.model_validate(strict_yaml.read(path))
    except FileNotFoundError:
        known = ", ".join(recipe_names())
        raise EngineError(
            f"no recipe {str(name)!r}. Choose one of {known}, or give the path of a YAML file."
        ) from None
    except ValidationError as error:
        raise EngineError(f"{paths.shown(path)}: {faults(error, Recipe, quoted=True)}") from error
    except (OSError, ValueError) as error:
        raise EngineError(f"{paths.shown(path)}: can't be read as YAML ({error})") from error


@checked
def load_extra(recipe: Recipe) -> Corpus | None:
    """Loads the dialogues that a recipe adds to the train split.

    Args:
        recipe: A recipe.

    Returns:
        The corpus; ``None`` if the recipe adds none.

    Raises:
        EngineError: If there is no such file.
        CorpusError: If it can't be read.
    """
    if recipe.extra is None:
        return None
    for path in (Path(recipe.extra), paths.ROOT / recipe.extra):
        if path.is_file():
            return load_corpus(path)
    raise EngineError(
        f"the recipe's `extra` is {recipe.extra!r}, and there is no such file, neither in the "
        f"working directory nor in {paths.ROOT}. Give the path of a file in the release's format."
    )
