"""What a run uses and costs: tokens, prices, measured speed."""
