"""Files, dataframes, dicts and lists in, Arrow tables out, and back."""
