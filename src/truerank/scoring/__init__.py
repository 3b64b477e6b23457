"""Models, factors, matrices and functions in; scorers, which give each user a score for each item, out."""
