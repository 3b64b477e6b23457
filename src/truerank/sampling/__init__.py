"""A sampling design in; samples, and the exact distribution of what a sample shows, out."""
