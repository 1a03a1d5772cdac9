"""`ottla storage` and `ottla log`: format and inspect data directories without a broker."""
