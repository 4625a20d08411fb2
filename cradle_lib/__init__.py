"""The public names of the library, as the notebooks import them.

Names are imported when first used, so that commands do not wait for heavy packages they do not
need. ``__init__.pyi`` lists the module of each name.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
