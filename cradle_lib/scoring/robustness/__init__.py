"""What a score depends on: conventions, subgroups of dialogues, thresholds."""
