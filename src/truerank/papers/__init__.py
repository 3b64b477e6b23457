"""Published results that truerank reproduces."""
