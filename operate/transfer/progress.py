"""Prints how many items a transfer has processed."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter

SECONDS = 0.2
QUIET_SECONDS = 10.0
"""Pause between lines when standard error is not a terminal."""
WIDTH = 24


class TransferProgress:
    """Counts the objects that a transfer from another server has processed, by kind, and prints the
    progress to standard error."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.written: Counter[str] = Counter()
        self._heading = ""
        self._total = self._done = 0
        self._shown = 0.0
        self._entered = time.monotonic()
        self._lock = threading.Lock()
        self._live = sys.stderr.isatty()

    def enter(self, heading: str, total: int) -> None:
        self._heading, self._total, self._done = heading, total, 0
        self._entered = time.monotonic()

    def step(self, kind: str, *, wrote: bool) -> None:
        with self._lock:
            self._done += 1
            self.counts[kind] += 1
            self.written[kind] += wrote
            now = time.monotonic()
            if now - self._shown >= (SECONDS if self._live else QUIET_SECONDS):
                self._shown = now
                self._print()

    def end(self) -> None:
        if self._live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _print(self) -> None:
        filled = WIDTH * self._done // max(self._total, 1)
        bar = "█" * filled + "░" * (WIDTH - filled)
        rate = self._done / max(time.monotonic() - self._entered, SECONDS)
        line = f"{bar} {self._done}/{self._total} {self._heading}, {rate:.3g} a second"
        if self._live:
            print(f"\r\033[K{line[:110]}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)
