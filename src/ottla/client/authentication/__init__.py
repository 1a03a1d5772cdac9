"""Client security: settings, trusted certificates, logins and their renewal.

settings ──► security (validates them together) ──► TlsContexts      for `network.tls`
                                                └─► Authenticator    for `NetworkClient`, with credentials and tokens
"""
