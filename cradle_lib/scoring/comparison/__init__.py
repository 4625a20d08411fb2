"""Several runs over the same dialogues: differences, tests, agreement turn by turn."""
