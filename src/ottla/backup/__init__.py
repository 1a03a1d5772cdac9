"""Back up topics, configs, groups' offsets and access rules of a cluster into a folder, and restore them.

```
backup  ─► survey ─► manifest        the state of the source: topics, configs, groups, access
   └────► folder ─► segments         records, in segment files; checksums of everything in the manifest
restore ─► target ─► offset_map      the state of the target, and the offset of each record there
verification ─► folder, segments
```

Both directions use the client protocol alone, so that either cluster may be Apache Kafka. `manifest`, `offset_map` and
`selection` are pure.
"""

from ottla.backup.backup import Backup, BackupReport, BackupSettings
from ottla.backup.folder import BackupFolder
from ottla.backup.manifest import BackupError, Manifest
from ottla.backup.offset_map import OffsetPolicy
from ottla.backup.restore import Restore, RestoreReport, RestoreSettings
from ottla.backup.selection import Selection
from ottla.backup.verification import Verification, verify_backup

__all__ = [
    "Backup",
    "BackupError",
    "BackupFolder",
    "BackupReport",
    "BackupSettings",
    "Manifest",
    "OffsetPolicy",
    "Restore",
    "RestoreReport",
    "RestoreSettings",
    "Selection",
    "Verification",
    "verify_backup",
]
