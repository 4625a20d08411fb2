"""When a label is tagged: onset, delay, tolerance, early detection, and what alarms cost."""
