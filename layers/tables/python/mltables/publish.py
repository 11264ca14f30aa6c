"""``python -m mltables.publish``: publishes what has landed, in a process of its own; ``--upkeep``
merges small files afterwards. One line of JSON tells what was done, and in how many seconds of
processor time."""

from __future__ import annotations

import json
import sys
import time

from mltables.publisher import publish
from mltables.upkeep import keep_up


def main(arguments: list[str]) -> int:
    done: dict[str, float] = {**publish()._asdict()}
    if "--upkeep" in arguments:
        done["files"] = keep_up()
    done["processor_seconds"] = time.process_time()
    sys.stdout.write(json.dumps(done) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
