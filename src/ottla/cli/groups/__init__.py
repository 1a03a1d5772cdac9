"""`ottla groups`: describe, watch and draw groups, and change their offsets."""
