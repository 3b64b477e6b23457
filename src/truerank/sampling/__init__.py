"""Sampling candidates instead of ranking them all: designs, their laws, and what sampled metrics mean."""
