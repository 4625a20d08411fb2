"""One run against gold: conventions, counts, scores, their signature."""
