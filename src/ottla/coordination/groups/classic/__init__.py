"""Groups of the classic protocol (JoinGroup, SyncGroup): `decision` has the protocol, `group` the values it works on."""
