"""Files of a challenge in, ranks to be scored by its metric out."""
