"""Recommenders to compare with: settings that `fit` turns into a model, which can be ranked and saved."""
