"""Exact ranks in, the effects of sampling on metrics out: bias, variance, and sample sizes at which orders flip."""
