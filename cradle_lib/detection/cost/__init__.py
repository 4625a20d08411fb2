"""What a run uses and costs: tokens, prices, arithmetic."""
