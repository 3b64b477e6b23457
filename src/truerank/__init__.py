"""How good is a recommender really? Exact, sampled and corrected ranking metrics.

The public names are listed in ``__init__.pyi`` and are loaded when first used. Even the list is read only then, because
the command line reacts to Ctrl-C once this module is imported.
"""


def __getattr__(name: str) -> object:
    _read_names()
    return globals()[name] if name in globals() else globals()["__getattr__"](name)


def __dir__() -> list[str]:
    _read_names()
    return globals()["__dir__"]()


def _read_names() -> None:
    """Replace the functions above by those that know all public names."""
    import lazy_loader

    names = ("__getattr__", "__dir__", "__all__")
    globals().update(zip(names, lazy_loader.attach_stub(__name__, __file__), strict=True))
