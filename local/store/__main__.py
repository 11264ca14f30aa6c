"""``python -m local.store MODULE …``: runs a module of a Lambda layer in a new process in which
DynamoDB clients can open a store, as in the process of the local server.
"""

from __future__ import annotations

import runpy
import sys

from local.store import store

if __name__ == "__main__":
    store.register()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
