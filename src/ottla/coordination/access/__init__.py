"""Access control lists with the semantics of Kafka's StandardAuthorizer.

    Acl ──► AclStore ──► Authorizer.allows(principal, host, operation, kind, name)
             by resource   super users, DENY before ALLOW, implied operations; results are cached

Pure: without connections and without a log. `cluster/` stores the ACLs, the broker calls the authorizer.
"""
