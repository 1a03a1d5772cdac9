"""How the clients' code runs: generator steps, futures, deadlines, backoff, the end of the process."""
