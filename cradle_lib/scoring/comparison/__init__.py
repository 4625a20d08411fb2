"""Several runs over the same dialogues: differences, tests, tie groups, agreement turn by turn."""
