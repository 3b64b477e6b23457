"""Results in, text, Markdown, LaTeX, TSV and JSON out; this only rounds and computes nothing."""
