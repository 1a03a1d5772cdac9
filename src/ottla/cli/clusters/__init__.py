"""`ottla cluster`: leaders, lagging replicas and disk usage, and their changes."""
