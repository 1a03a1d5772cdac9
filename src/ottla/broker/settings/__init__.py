"""The settings of a node: their sources, their checks, and their values as changed at run time.

sources (command line, environment, file) ──► config ──► dynamic_config (changed by the cluster) ──► config_entries
"""
