"""Conversations with others of the cluster, controllers and brokers, encrypted and logged in as the settings say.

peer_connection: one conversation, for a thread · loop_connection: one in the broker's loop, which knows it as own_connection · peers: who makes them · split: whom they do not reach for now
"""
