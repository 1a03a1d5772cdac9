"""Security of outgoing connections: settings, trust, certificates, login.

Used by clients, and by brokers as clients of controllers and other brokers. Nothing here waits or uses a clock.
"""
