"""Random histories in virtual time: the real pure parts, in a simulated environment with faults.

Each history is determined by a seed, and a failure prints it: `OTTLA_SEED=… pytest tests/simulation` plays that one
again, and prints every event. There is no socket, no thread, no sleep.
"""
