"""Loops that numba compiles, loaded only when they are about to run."""
