"""`ottla doctor`: check this machine and a cluster for common problems; one file per kind of finding."""
