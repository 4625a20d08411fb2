"""The library behind the book: what notebooks import comes from here.

Names are loaded when they are first used, so that a command that needs none of the heavy
packages does not wait for them. ``__init__.pyi`` says where each name lives.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
