"""A sampling design in; samples, and the exact distribution of the sampled counts, out."""
