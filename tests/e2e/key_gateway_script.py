"""Calls the AI gateway with OpenAI's client, whose API key is one of this server.

python key_gateway_script.py URL KEY
"""

from __future__ import annotations

import sys
from importlib.metadata import version

import openai

URL, KEY = sys.argv[1:]


def client(key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{URL}/gateway/mlflow/v1", api_key=key, max_retries=0)


answer = client(KEY).chat.completions.create(
    model="chat", messages=[{"role": "user", "content": "hello there"}]
)
assert answer.choices[0].message.content == "echo: hello there", answer
assert [model.id for model in client(KEY).models.list()] == ["chat"]
try:
    client(KEY[:-1]).models.list()
except openai.AuthenticationError:
    pass
else:
    raise AssertionError("a wrong key was accepted")
sys.stdout.write(f"ok {version('anthropic')}\n")  # by which the environment is known
