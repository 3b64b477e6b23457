"""Results in, text, Markdown, LaTeX, TSV and JSON out; it rounds and computes nothing."""
