"""Results in, text, Markdown, LaTeX, HTML, CSV, TSV and JSON out; this only rounds and computes nothing."""
