"""Arrays in, counts and solutions out: the compiled loops."""
