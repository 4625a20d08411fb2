"""Fine-tunes a model on a corpus: recipes, sequences, training, checkpoints, record and card."""

from cradle_extras.training.recipe import load_recipe
from cradle_extras.training.record import load_learned, read_training

__all__ = ["load_learned", "load_recipe", "read_training"]
