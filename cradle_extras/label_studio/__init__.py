"""Label Studio: tasks, the labelling interface, exports, and the plan of a study."""

from cradle_extras.label_studio.exports import read_exports
from cradle_extras.label_studio.interface import labelling_config, labelling_keys
from cradle_extras.label_studio.study import Study, plan_study

__all__ = ["Study", "labelling_config", "labelling_keys", "plan_study", "read_exports"]
