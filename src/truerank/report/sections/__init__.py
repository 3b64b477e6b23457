"""A section of a report per file: `section(material)` returns it, or None where it does not apply."""
