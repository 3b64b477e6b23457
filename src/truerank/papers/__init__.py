"""Published papers: their tables and figures, computed again beside the printed numbers."""
