"""`ottla mirror`: copy one cluster to another."""
