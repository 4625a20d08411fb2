"""What annotation and scoring share: rates, matchings, sums over dialogues, intervals."""
