"""Engines that ask language models: weights on this machine, and services behind an API.

``cradle_lib`` finds them by the entry points of the group ``cradle.engines``, as it finds the
engines of any other package, and never imports them.
"""
