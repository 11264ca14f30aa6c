"""Stores in a file how far each shard of the table's stream has been processed, so that a restarted
local server continues there.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from local.log import report

_WRITE_SECONDS = 0.5


class Checkpoints:
    """The sequence numbers of the stream up to which records are processed: by stream, event source
    mapping and shard. Their file usually lags by less than two seconds; after a kill the records
    since then are processed again.
    """

    def __init__(self, path: Path) -> None:
        self.changed = threading.Event()
        """Set whenever a checkpoint changes. The thread that waits for it clears it."""
        self._path = path
        self._lock = threading.Lock()
        self._dirty = False
        self._failing = False
        self._written = 0.0
        self._values: dict[str, str] = {}
        try:
            self._values = {str(k): str(v) for k, v in json.loads(path.read_text()).items()}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, AttributeError) as error:
            report(f"{path}: {error}; the stream is read from its beginning")

    def get(self, stream: str, mapping: str, shard: str) -> str | None:
        """Returns the last sequence number that an event source mapping has processed in a stream's
        shard; None if there is no checkpoint."""
        return self._values.get(f"{stream} {mapping} {shard}")

    def lowest(self, mapping: str) -> int:
        """Returns the stream's sequence number up to which an event source mapping has processed
        every known shard; 0 without a checkpoint."""
        return min(
            (int(value) for key, value in self._values.items() if key.split()[1] == mapping),
            default=0,
        )

    def highest(self, table: str) -> int:
        """Returns the highest sequence number that any event source mapping has processed of a
        table's stream; 0 without a checkpoint."""
        return max(
            (int(number) for key, number in self._values.items() if f":table/{table}/" in key),
            default=0,
        )

    def set(self, stream: str, mapping: str, shard: str, sequence_number: str) -> None:
        """Records that an event source mapping has processed a stream's shard up to this number."""
        with self._lock:
            self._values[f"{stream} {mapping} {shard}"] = sequence_number
            self._dirty = True
        self.changed.set()
        self.flush(force=False)

    def flush(self, *, force: bool = True) -> None:
        """Writes to the file how far the stream's records are processed, if a checkpoint has
        changed, and either the last write was at least half a second ago or ``force`` is set. Only
        logs that the file cannot be written."""
        now = time.monotonic()
        with self._lock:
            if not self._dirty or (not force and now - self._written < _WRITE_SECONDS):
                return
            self._written = now
            temporary = self._path.with_suffix(".new")
            try:
                temporary.write_text(json.dumps(self._values, indent=1, sort_keys=True))
                temporary.replace(self._path)
            except OSError as error:
                # Nothing is lost: the records since the last checkpoint are read again.
                if not self._failing:
                    report(f"{self._path} cannot be written: {error.strerror}")
                self._failing = True
                return
            self._dirty = self._failing = False
