"""Events in, training and held-out interactions out."""
