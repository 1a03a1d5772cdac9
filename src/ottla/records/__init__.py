"""Record batches: bytes ⇄ records ⇄ columns.

```
bytes ── batch (header, CRC) ── compression ── records ──► Columns ──► arrow
bytes ◄── batch (header, CRC) ◄── compression ◄── BatchBuilder (one by one), encode_rows (columns)
```

Knows the format of the log, not sockets, not clocks. Import what is needed from its module: nothing here loads pyarrow
but `arrow`.
"""

from __future__ import annotations
