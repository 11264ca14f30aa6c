"""How the C library keeps memory that was given back to it, of which a process that runs for weeks
must not gather ever more; knows nothing of Python's own objects, which have another allocator."""

from __future__ import annotations

import ctypes
from typing import Final

# The numbers of malloc.h.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8

BLOCK_BYTES: Final = 128 * 1024


def keep_little() -> bool:
    """Before the first thread is started. False where the C library is not GNU's, whose habits
    alone this changes.

    It would give each thread a place of its own to allocate in, up to eight for each processor, and
    keep what the largest answers of each once took, as far as the heap's last block goes; and it
    would count ever larger blocks among those that are kept. With one place for all threads, which
    take turns anyway, and with large blocks mapped one by one, what is freed goes back to the
    system.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    chosen = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, BLOCK_BYTES), (_TRIM_THRESHOLD, BLOCK_BYTES))
    taken = [mallopt(option, value) for option, value in chosen]
    return all(taken)
