"""Results leave for other people and other tools, and come back: bundles, and logs of Inspect."""
