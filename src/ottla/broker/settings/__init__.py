"""What a broker can be told, where that comes from, and what of it was changed while it runs.

sources (command line, environment, file) ──► config ──► dynamic_config (as the cluster has changed it) ──► entries
"""
