"""`ottla mirror`: a cluster that follows another."""
