"""How good is a recommender really? Exact, sampled and corrected ranking metrics.

The public names are listed in ``__init__.pyi`` and are loaded when first used. Even the list is read only then, because
the command line reacts to Ctrl-C once this module is imported.
"""


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("truerank")
    if "_load" not in globals():
        _read_names()
    return globals()[name] if name in globals() else globals()["_load"](name)


def __dir__() -> list[str]:
    _read_names()
    return globals()["__dir__"]()


def _read_names() -> None:
    """Define the functions that know all public names."""
    import lazy_loader

    names = ("_load", "__dir__", "__all__")
    globals().update(zip(names, lazy_loader.attach_stub(__name__, __file__), strict=True))
