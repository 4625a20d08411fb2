"""Corpora; only this folder reads or writes dialogues. Names are imported when first used."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
