"""Who clients are: the security of each listener, and the logins of its connections.

ListenerSecurity ──► TlsContexts, rules for names in certificates, keys of tokens
Authentication ──► Login of a connection ──► conversations of `protocol.sasl`
       └──► Passwords, Tokens: what the cluster's metadata knows of users
"""
