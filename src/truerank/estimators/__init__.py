"""Estimates of exact metrics from sampled ranks: corrections, their assumptions, and the classes for writing new ones.

The names are listed in ``__init__.pyi`` and are loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
