"""``python -m local.store MODULE …``: runs a module of the layers in a process of its own that can
open a store, as the runner's process can."""

from __future__ import annotations

import runpy
import sys

from local.store import store

if __name__ == "__main__":
    store.register()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
