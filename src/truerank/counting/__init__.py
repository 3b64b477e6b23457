"""Scores in; out: how many irrelevant candidates are above, or tie with, each held-out item; or the best items."""
