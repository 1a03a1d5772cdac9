"""`ottla groups`: described, watched, drawn as a time line, and their offsets moved."""
