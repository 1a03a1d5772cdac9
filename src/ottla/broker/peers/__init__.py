"""Connections that a node opens to other brokers and controllers, in its event loop."""
