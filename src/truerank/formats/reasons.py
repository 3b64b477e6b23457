"""Why something can't be read, in few words."""


def reason(error: BaseException) -> str:
    r"""Return the first line of an error, shortened, without a full stop.

    Examples
    --------
    >>> reason(ValueError("the header is broken.\nhint: repair it"))
    'the header is broken'
    >>> reason(EOFError())
    'EOFError'
    """
    line = (str(error).splitlines() or [""])[0].strip().rstrip(".") or type(error).__name__
    return line if len(line) <= 200 else line[:197] + "..."
