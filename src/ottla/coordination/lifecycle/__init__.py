"""The lifecycle of a broker in a cluster: registration, heartbeats, fencing and controlled shutdown (KIP-631)."""
