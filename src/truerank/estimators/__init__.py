"""Estimates of exact metrics from sampled ranks: corrections, what they assume, and what it takes to write one.

The names are listed in ``__init__.pyi`` and are loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
