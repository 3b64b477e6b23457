"""Exact ranks in, what sampling does to their metrics out: bias, variance, and sample sizes at which orders flip."""
