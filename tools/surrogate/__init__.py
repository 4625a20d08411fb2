"""The surrogate corpus: synthetic, mild, with the published counts and none of the release's text.

It exists so that everything runs; a score on it says nothing about a model's worth.
"""
