"""A corpus becomes a model that can do the task: sequences, recipe, training, choice, card."""

from cradle_extras.training.recipe import Recipe, load_recipe, recipe_names
from cradle_extras.training.record import TrainingRecord, read_training
from cradle_extras.training.train import Trained, train_model

__all__ = [
    "Recipe",
    "Trained",
    "TrainingRecord",
    "load_recipe",
    "read_training",
    "recipe_names",
    "train_model",
]
