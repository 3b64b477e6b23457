"""Leaves out the examples of modules whose libraries only some environments have."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["truerank/torch.py"]
