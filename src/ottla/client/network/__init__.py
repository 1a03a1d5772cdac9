"""Connections to brokers and the requests on them: `NetworkClient` and its parts."""
