"""What the C library keeps of memory that was freed."""

from __future__ import annotations

import platform
import subprocess
import sys
from typing import Final

import pytest

from tests.engines import ROOT

_WORK: Final = """
import ctypes, sys, threading
from local import malloc_settings

if sys.argv[1] == "little":
    assert malloc_settings.return_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]

def resident():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * 4096

turn, all_are_here = threading.Lock(), threading.Barrier(8)

def answer():
    all_are_here.wait()
    for size in (16_000, 200_000, 1_000_000):
        with turn:
            blocks = [libc.malloc(size) for _ in range(8_000_000 // size)]
            for block in blocks:
                ctypes.memset(block, 1, size)
            libc.malloc(100)  # lives on, behind what is freed
            for block in blocks:
                libc.free(block)
    all_are_here.wait()

before = resident()
threads = [threading.Thread(target=answer) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(resident() - before)
"""


def _kept(how: str) -> int:
    """Bytes, after each of eight threads had answers of 8 MB, one thread at a time."""
    done = subprocess.run(
        [sys.executable, "-c", _WORK, how], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library is left as it is")
def test_what_threads_have_freed_goes_back_to_the_system() -> None:
    assert _kept("little") < 6_000_000
    assert _kept("as it is") > 10_000_000
