"""Who may do what, by rules that are kept: access control lists with the meaning of Kafka's StandardAuthorizer.

    Acl ──► AclStore ──► Authorizer.allows(principal, host, operation, kind, name)
             by resource   super users, DENY before ALLOW, what is implied; verdicts are remembered

Pure: knows no connections and no log. `cluster/` keeps the rules, the broker asks.
"""
