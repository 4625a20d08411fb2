"""The surrogate corpus: synthetic, mild, with the published counts and no text of the release.

It makes everything executable without the release. Scores on it say nothing about models.
"""
