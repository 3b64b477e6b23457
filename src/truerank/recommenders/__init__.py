"""Training interactions in, models out, which are scorers and can be saved."""
