"""Runs the calls of an SDK at several addresses, and prints what came of each as JSON.

A script of this folder hands :func:`main` its calls. Its only argument is a JSON list of
:class:`Target`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel

GPT = "gpt-4o"
CLAUDE = "claude-opus-4-8"
GEMINI = "gemini-2.5-flash"
"""Names of models, and of the gateway's endpoints that call them."""
FAILURES = (400, 401, 403, 404, 422, 429, 500)
"""Statuses of providers that an SDK must tell its user alike."""
STREAM_FAILURES = (400, 429, 500)
"""Those that are tried with streams, too."""
SHORT = 1.0
"""Seconds of a client's patience, which a provider that is asked to ``wait`` exceeds."""
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
"""A picture in base64."""
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "population": {"type": "integer"}},
    "required": ["city", "population"],
    "additionalProperties": False,
}
"""A schema of answers and of arguments."""


class City(BaseModel):
    """An answer of this schema."""

    city: str
    population: int


class Target(NamedTuple):
    """Where an SDK calls: the providers themselves, or the gateway."""

    name: str
    openai: str
    anthropic: str
    gemini: str
    headers: dict[str, str]
    key: str
    """The SDK's API key."""
    is_everything: bool
    """Whether all of the providers' paths are there, not only those that are routes of MLflow."""


Call = Callable[[], Any]


def main(calls_at: Callable[[Target], Mapping[str, Call]]) -> None:
    """Prints ``{target: {name of the call: what came of it}}``."""
    targets = [Target(**target) for target in json.loads(sys.argv[1])]
    told = {
        target.name: {name: _observed(call) for name, call in calls_at(target).items()}
        for target in targets
    }
    sys.stdout.write(json.dumps(told, ensure_ascii=True, sort_keys=True))


def failures(
    name: str, call: Callable[[str], Any], statuses: Sequence[int] = FAILURES
) -> dict[str, Call]:
    """Calls with texts to which a provider answers each of the statuses."""
    return {
        f"{name} fails with {status}".strip(): partial(call, f"status {status}")
        for status in statuses
    }


def _observed(call: Call) -> dict[str, Any]:
    try:
        value = call()
    except Exception as error:
        return {"error": type(error).__name__, "status": _status(error), "text": str(error)}
    return {"value": plain(value)}


def _status(error: BaseException | None) -> int | None:
    """The status of an answer, which a wrapped error may hold."""
    if error is None:
        return None
    for name in ("status_code", "code"):
        status = getattr(error, name, None)
        if isinstance(status, int):
            return status
    return _status(error.__cause__)


def plain(value: Any) -> Any:
    """A value as JSON, with the names of its classes."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, Mapping):
        return {str(key): plain(member) for key, member in value.items()}
    kind = type(value).__name__
    if hasattr(value, "model_dump"):
        return {kind: plain(value.model_dump(warnings=False))}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {kind: plain(fields)}
    if isinstance(value, Iterable):
        return [plain(member) for member in value]
    return str(value)
