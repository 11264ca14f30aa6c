"""Calls endpoints of the AI gateway with OpenAI's client, and writes what the client saw of each
call; run by test_published_questions.py.

python usage_gateway_script.py URL FILE PASSWORD USER…
"""

from __future__ import annotations

import base64
import json
import sys
import time
from pathlib import Path
from typing import Any

import openai

URL, FILE, PASSWORD, USERS = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
SAID: list[Any] = [{"role": "user", "content": "hello there"}]


def call(user: str, endpoint: str) -> dict[str, Any]:
    """What the client saw of one call."""
    login = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
    client = openai.OpenAI(
        base_url=f"{URL}/gateway/mlflow/v1",
        api_key="own",
        default_headers={"X-MLflow-Authorization": f"Basic {login}"},
        max_retries=0,
    )
    seen = {"user": user, "endpoint": endpoint, "began": time.time()}
    try:
        answer = client.chat.completions.create(model=endpoint, messages=SAID)
    except openai.APIStatusError as error:
        return {**seen, "status": error.status_code, "input": None, "output": None, "model": None}
    used: Any = answer.usage
    return {
        **seen,
        "status": 200,
        "input": used.prompt_tokens,
        "output": used.completion_tokens,
        "model": answer.model,
    }


calls = [
    call(user, endpoint)
    for number, user in enumerate(USERS)
    for endpoint in ["chat"] * (3 + number) + ["broken"] * (1 + number) + ["other"]
]
Path(FILE).write_text(json.dumps(calls), encoding="utf-8")
sys.stdout.write("ok 2.12.0\n")
