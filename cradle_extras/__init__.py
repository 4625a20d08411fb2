"""Optional parts: dialogues from posts, training, Label Studio, Inspect, bundles, clusters.

``cradle_lib`` finds them through entry points and never imports them.
"""
