"""Sets glibc's malloc so that a process that runs for weeks returns freed memory to the system.
Python's own allocator for small objects is not affected.
Why this is here, and when it can go: with glibc's defaults the resident memory of the local server
grows with its largest answers. It can go when that memory stays flat without it.
"""

from __future__ import annotations

import ctypes
from typing import Final

# The numbers of malloc.h.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8

BLOCK_BYTES: Final = 128 * 1024


def return_freed_memory() -> bool:
    """Makes malloc return freed memory. Must be called before the first thread is started. Returns
    False if the C library lacks glibc's ``mallopt`` or refuses a setting.

    By default glibc gives each thread an arena of its own (up to eight for each processor), each
    arena keeps the memory of its largest answers, and the size from which blocks are mapped one by
    one grows. This function sets one arena for all threads, which take turns under Python's lock
    anyway; and blocks of 128 KiB and more are always mapped one by one and returned when they are
    freed.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    chosen = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, BLOCK_BYTES), (_TRIM_THRESHOLD, BLOCK_BYTES))
    taken = [mallopt(option, value) for option, value in chosen]
    return all(taken)
