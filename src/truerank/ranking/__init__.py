"""A scorer and held-out items, or lists and their truth, in; `Ranks` out."""
