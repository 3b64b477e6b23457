"""Corrections of sampled metrics: from the sampled count of an item to an estimate of what it is worth."""
