"""How clients are secured: their settings, whom they trust, how they log in and stay logged in.

settings ──► security (what they mean together) ──► TlsContexts      for `network.tls`
                                                └─► Authenticator    for `NetworkClient`, with credentials and tokens
"""
