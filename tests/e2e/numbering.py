"""Lets a running product's numbers begin where none is a part of anything else.

Run as a program of its own, with the product's engine in the environment: which engine a process
speaks to is decided once.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.engines import ROOT
from tests.servers import Server, announced_table, environment

FIRST = 1_900_000_000
NOBODYS = 2_000_000_000
"""From here on nothing has a number."""


def begin_high(server: Server) -> None:
    """What is made from here on has a number of ten digits."""
    engine = announced_table(server)
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.numbering"],
        cwd=ROOT,
        env=environment(
            AWS_ENDPOINT_URL_DYNAMODB=engine,
            AWS_ACCESS_KEY_ID="local",
            AWS_SECRET_ACCESS_KEY="local",
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    from local.environment import prepare
    from local.store import store

    store.register()
    prepare((), os.environ["AWS_ENDPOINT_URL_DYNAMODB"], own_store=False)
    from mlcore.db import keys
    from mlcore.db.expression import Update
    from mlcore.db.table import table
    from mlcore.models.counters import IdCounter

    update = Update()
    update.set(IdCounter.type, keys.ID_COUNTER.name)
    for count, counter in enumerate(
        (IdCounter.contexts, IdCounter.artifacts, IdCounter.executions)
    ):
        update.set(counter, FIRST + count * 10_000_000)
    update.set_once(IdCounter.since, 1)
    update.add(IdCounter.version, 1)
    table.update(keys.id_counter(), update)
