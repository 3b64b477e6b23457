"""A model of another library in, a scorer out; one file per library, which is imported when needed."""
