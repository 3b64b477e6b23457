"""What everything stands on: ranks, checks, tables, text forms, threads."""
