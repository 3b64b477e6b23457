"""Text such as ``"ndcg@10"`` in, a metric as a value such as ``NDCG(10)`` out.

The names are listed in ``__init__.pyi`` and are loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
