"""Ranks and metrics in, values and estimates with their errors out."""
