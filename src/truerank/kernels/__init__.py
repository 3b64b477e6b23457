"""Arrays in; out: how many candidates are above, or tie with, each held-out item, the best items, or solutions."""
