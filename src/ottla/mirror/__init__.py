"""Copy topics, configs and offsets of groups from one cluster to another.

```
mirror ─► survey ─► topic_plan, group_plan     the state of both clusters, and the differences
   └─► record_copier ─► ledger                 records, and the copied offsets of each partition
selection                                      the copied topics and groups
```

`ledger`, the plans and `selection` are pure.
"""

from ottla.mirror.mirror import Mirror
from ottla.mirror.selection import Selection
from ottla.mirror.settings import MirrorSettings

__all__ = ["Mirror", "MirrorSettings", "Selection"]
