"""Scores in, how many irrelevant candidates stand above or tie with each held-out item out."""
