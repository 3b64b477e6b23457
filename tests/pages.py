"""The examples of the documentation that are not doctests, for the tests that have what they need."""

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def run_block(page: str, words: str, names: dict[str, Any]) -> None:
    """Run the one plain Python block of a page that contains some words; what it defines is added to the names."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if words in block and ">>>" not in block)
    exec(block, names)
