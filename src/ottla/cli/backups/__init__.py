"""`ottla backup` and `ottla restore`."""
