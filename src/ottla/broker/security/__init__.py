"""Authentication of connections and authorization of requests.

ListenerSecurity ──► TLS contexts, mapping rules for certificate names, token keys
Authentication ──► the Login of one connection ──► SASL exchanges of `protocol.sasl`
       └──► Passwords, Tokens: the users in the cluster's metadata
"""
