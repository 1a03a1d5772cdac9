"""`ottla context`: named clusters, and the cluster that commands use."""
