"""Fault injection in the plugin's broker."""
