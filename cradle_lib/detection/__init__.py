"""Runs models over dialogues and stores their predictions; scoring is a separate package.

Names are imported on first use, so that reading a journal imports no engine.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
