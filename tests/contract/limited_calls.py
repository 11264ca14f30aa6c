"""A process of the gateway's function that calls an endpoint until a limit refuses it.

    python -m tests.contract.limited_calls FOLDER ENGINE TABLE MOMENT BODY CALLER

Prints ``ready``, waits for a line, and prints the statuses of its calls as JSON. All calls are made
at MOMENT, in ms since 1970, so that no minute ends between them. The key of sealed secrets is in
FOLDER.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Final

import pytest

from mlcore.observability import logger
from tests.contract.gateway_requests import respond
from tests.contract.sealing import seal_here
from tests.engines import STORE  # registers the store as an engine

PATH: Final = "mlflow/v1/chat/completions"
REFUSALS: Final = 8
"""So many in a row end the process."""
MOST_CALLS: Final = int(os.environ.get("MOST_CALLS", "5000"))


def main(folder: str, engine: str, table: str, moment: str, body: str, caller: str) -> None:
    os.environ.update(AWS_ENDPOINT_URL_DYNAMODB=engine, TABLE_NAME=table)
    logger.setLevel("ERROR")  # its lines would be among what is printed
    patch = pytest.MonkeyPatch()
    seal_here(patch, Path(folder))
    _stop_the_clock(patch, int(moment))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    statuses: list[int] = []
    while statuses[-REFUSALS:] != [429] * REFUSALS and len(statuses) < MOST_CALLS:
        answer = respond("POST", PATH, json.loads(body), caller=json.loads(caller))
        statuses.append(answer["statusCode"])
        if statuses[-1] == 429:
            assert int(answer["headers"]["retry-after"]) > 0, answer
    sys.stdout.write(json.dumps(statuses))


def _stop_the_clock(patch: pytest.MonkeyPatch, moment: int) -> None:
    from mlcore.gateway import rate_limits  # noqa: PLC0415

    patch.setattr(rate_limits, "now_ms", lambda: moment)


if __name__ == "__main__":
    assert STORE
    main(*sys.argv[1:])
