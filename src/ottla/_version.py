"""The version of Ottla, importable without the public names."""

__version__ = "0.2.0"
