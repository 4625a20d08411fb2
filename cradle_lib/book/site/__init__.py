"""The rendered site: what its pages show beside their text, and what they weigh."""
