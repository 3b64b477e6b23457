"""Real data and texts that lie beside the repository; tests that need them are skipped where they are absent."""

from pathlib import Path

SHARED = Path(__file__).parents[2] / "shared"
DATA = SHARED / "data"
