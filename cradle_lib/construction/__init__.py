"""Construction: posts become plans, a writer words them, validators judge, a corpus results.

The phrase bank that ships is one writer, a language model another: both work on the same plans and
pass the same validators.
"""
