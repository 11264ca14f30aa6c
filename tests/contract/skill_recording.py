"""Records what a server answers to the requests of ``skill_calls``::

python -m tests.contract.skill_recording http://127.0.0.1:5000
"""

from __future__ import annotations

import http.client
import json
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.contract.skill_calls import calls, plain
from tests.contract.skill_requests import ROOT

FILE: Final = Path(__file__).parent / "recorded" / "skills_3_18_0.json"


def record(url: str) -> list[Any]:
    """The comparable answers of a server that has no skills yet."""
    answers = []
    for call in calls():
        headers = {} if call.content_type is None else {"Content-Type": call.content_type}
        content = call.content if call.method != "GET" else None
        # A server that refuses a body unread closes the connection.
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
        connection.request(call.method, ROOT + call.path, content, headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        try:
            body = json.loads(text)
        except ValueError:
            body = text
        answers.append(plain(response.status, body))
    return answers


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    lines = [json.dumps(answer, ensure_ascii=False) for answer in record(sys.argv[1])]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
