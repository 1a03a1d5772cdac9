"""Copy topics, configs and offsets of groups from one cluster to another.

```
mirror ─► survey ─► topic_plan, group_plan     the state of both clusters, and the differences
   └─► carrier ─► ledger                       records, and the copied offsets of each partition
selection, progress                            the copied topics and groups; rate and remaining records
```

`ledger`, the plans and `selection` are pure.
"""

from ottla.mirror.mirror import Mirror
from ottla.mirror.selection import Selection
from ottla.mirror.settings import MirrorSettings

__all__ = ["Mirror", "MirrorSettings", "Selection"]
