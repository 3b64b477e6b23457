"""Files and tables in: every reader ends in an Arrow table whose columns have the names of their roles."""
