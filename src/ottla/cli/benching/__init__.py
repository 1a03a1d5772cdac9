"""`ottla bench`: what a cluster takes and hands out in a second, and how long that takes."""
