"""Journals: files of answers, and the predictions read from them."""
