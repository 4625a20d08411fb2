"""A corpus becomes a model that can do the task: sequences, recipe, training, choice, card."""

from cradle_extras.training.recipe import load_recipe
from cradle_extras.training.record import read_training

__all__ = ["load_recipe", "read_training"]
