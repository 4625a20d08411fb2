"""Intervals and tests for any statistic of dialogues, by resampling whole dialogues."""
