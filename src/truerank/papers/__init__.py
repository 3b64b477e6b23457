"""Published papers: their tables and figures, recomputed and shown beside the printed numbers."""
