"""`ottla doctor`: looks at what commonly goes wrong on this machine and in a cluster, one kind of finding a file."""
