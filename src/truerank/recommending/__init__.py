"""A scorer, or a file of lists, in; out: `Recommendations`, the best items of each user."""
