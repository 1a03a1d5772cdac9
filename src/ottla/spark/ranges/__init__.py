"""The offsets that a query reads: options become bounds, bounds become offsets, and ranges of offsets are divided among tasks."""
