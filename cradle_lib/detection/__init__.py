"""Detection: dialogues and a model in, predictions out. Knows no score.

Names are loaded when first used: reading a journal needs no engine.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
