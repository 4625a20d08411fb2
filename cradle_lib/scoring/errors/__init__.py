"""What went wrong: kinds of error, confusion of labels, what a wrong tag does to later turns."""
