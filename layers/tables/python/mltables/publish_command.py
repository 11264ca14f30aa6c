"""``python -m mltables.publish_command``: adds the changes in landing objects (files of changes to
publish) to the system tables, in a process of its own.

With ``--upkeep`` it also publishes deferred traces, and maintains the tables afterwards
(``table_maintenance``). It prints one line of JSON with the counts and the seconds of processor
time."""

from __future__ import annotations

import json
import sys
import time

from mlcore.system_tables import landing_objects
from mltables.publisher import publish
from mltables.table_maintenance import maintain_tables


def main(arguments: list[str]) -> int:
    is_upkeep = "--upkeep" in arguments
    kinds = (
        (*landing_objects.KINDS, landing_objects.DEFERRED) if is_upkeep else landing_objects.KINDS
    )
    done: dict[str, float] = {**publish(waiting=landing_objects.waiting(kinds))._asdict()}
    if is_upkeep:
        done["files"] = maintain_tables()
    done["processor_seconds"] = time.process_time()
    sys.stdout.write(json.dumps(done) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
