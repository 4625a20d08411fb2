"""Label Studio: tasks, the labelling interface, exports, and the plan of a study."""

from cradle_extras.label_studio.interface import labelling_keys

__all__ = ["labelling_keys"]
