"""truerank tells how good a recommender really is: ranking metrics, exact, sampled and corrected.

The public names are listed in ``__init__.pyi`` and load when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
