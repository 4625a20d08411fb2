"""The protocol: one question for each user turn, and how its answer is read."""
