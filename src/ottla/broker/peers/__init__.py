"""Connections to other nodes of the cluster, controllers and brokers, encrypted and logged in as the settings say.

peer_connection: one connection, in the event loop, which knows it as own_connection · peers: makes them · split: the nodes that are not reached for now
"""
