"""`ottla context`: clusters by a name, and which of them a command speaks to."""
