"""Topics, configs and offsets of groups, carried from one cluster to another.

```
mirror ─► survey ─► topic_plan, group_plan     what there is in both, and what the target lacks
      └─► carrier ─► ledger                    records, and how far each partition was carried
selection, progress                            which of them, under which names; how quickly
```

`ledger`, the plans, `selection` and `progress` decide and reach nothing.
"""

from ottla.mirror.mirror import Mirror
from ottla.mirror.selection import Selection
from ottla.mirror.settings import MirrorSettings

__all__ = ["Mirror", "MirrorSettings", "Selection"]
