"""A metric and sampled ranks in, estimates of the exact metric out."""
