"""Asks a chat of the gateway until its limit refuses it several times in a row.

    python flood_script.py URL ENDPOINT AUTHORIZATION CALLS

Prints the statuses as JSON; at most CALLS calls.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from typing import Final
from urllib.parse import urlsplit

REFUSALS: Final = 10


def main(url: str, endpoint: str, authorization: str, calls: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    body = json.dumps({"model": endpoint, "messages": [{"role": "user", "content": "hello"}]})
    headers = {"content-type": "application/json", "authorization": authorization}
    statuses: list[int] = []
    while statuses[-REFUSALS:] != [429] * REFUSALS and len(statuses) < int(calls):
        connection.request("POST", "/gateway/mlflow/v1/chat/completions", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        statuses.append(answer.status)
        if answer.status == 429:
            wait = int(answer.headers["retry-after"])
            assert 0 < wait <= 24 * 3600, text
            reset = answer.headers.get("x-ratelimit-reset-requests") or answer.headers.get(
                "x-ratelimit-reset-tokens"
            )
            if reset is not None and reset != f"{wait}s":
                # Open calls hold the rest of the limit: the caller comes back when they have ended.
                assert wait == 1, (reset, wait)
                statuses.pop()
                time.sleep(wait)
    sys.stdout.write(json.dumps(statuses))


if __name__ == "__main__":
    main(*sys.argv[1:])
