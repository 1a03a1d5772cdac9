"""`ottla storage` and `ottla log`: directories that are formatted, and what lies in them, without a broker."""
