"""The step of the command ``doctor`` that checks the AI gateway, if the gateway has endpoints."""

from __future__ import annotations

from operate.doctor.checkup_state import Checkup, expect
from operate.doctor.outcome import LeftOut


def call(checkup: Checkup) -> str:
    """Checks the AI gateway: lists its endpoints, and calls the endpoint that ``--endpoint`` names,
    if any. Returns the result as a text. Raises LeftOut if the gateway has no endpoints, Wrong if
    the call fails."""
    api, wanted = checkup.api, checkup.options.endpoint
    listed = api.ask("GET", "3.0/mlflow/gateway/endpoints/list").get("endpoints", [])
    if not listed:
        raise LeftOut("the gateway has no endpoints")
    if wanted is None:
        return f"{len(listed)} endpoints; --endpoint NAME calls one, which may cost money"
    body = {"messages": [{"role": "user", "content": "Say: ok"}], "max_tokens": 5}
    answer = api.call("POST", f"/gateway/{wanted}/mlflow/invocations", body)
    expect(answer.status == 200, f"{wanted}: {answer.status} {answer.text[:300]}")
    return f"{wanted} answers"
