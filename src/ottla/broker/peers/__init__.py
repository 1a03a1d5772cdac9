"""Conversations with others of the cluster, controllers and brokers, encrypted and logged in as the settings say.

peer_connection: one conversation · peers: who makes them
"""
