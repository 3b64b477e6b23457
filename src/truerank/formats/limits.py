"""How large a compressed file may unpack, so that a small file can't fill the memory."""

import os
import re

from truerank.errors import InputError

LIMIT_VARIABLE = "TRUERANK_UNPACK_LIMIT"


def unpack_limit(packed: int) -> int:
    """Return how many bytes a compressed file of `packed` bytes may unpack to.

    It is 1 GiB or 50 times the packed size, whichever is more. The environment variable TRUERANK_UNPACK_LIMIT
    overrides it with a number of bytes.

    Examples
    --------
    >>> unpack_limit(1_000) == 2**30, unpack_limit(10**9) == 50 * 10**9
    (True, True)
    """
    given = os.environ.get(LIMIT_VARIABLE)
    if given is None:
        return max(1 << 30, 50 * packed)
    if not re.fullmatch(r"[0-9]{1,18}", given):
        raise InputError(f"{LIMIT_VARIABLE} must be a number of bytes, got {given!r}.")
    return int(given)


def check_unpacked(name: str, size: int, packed: int) -> None:
    """Raise `InputError` if something unpacks to more bytes than `unpack_limit` allows."""
    if size > (limit := unpack_limit(packed)):
        raise InputError(
            f"{name} unpacks to more than {limit:,} bytes; if this is intended, set the environment variable "
            f"{LIMIT_VARIABLE} to the number of bytes to allow."
        )
