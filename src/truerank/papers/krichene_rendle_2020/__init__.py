"""Krichene & Rendle, "On Sampled Metrics for Item Recommendation", KDD 2020."""
