"""Private texts, spans that have them everywhere, and a search of everything that is stored for
them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlcore.db import keys
from tests.contract.conftest import Store
from tests.contract.trace_calls import span

Json = dict[str, Any]
SECRET = "ann.secret@example.com"
CARD = "4111 1111 1111 1111"
PASSWORD = "hunter2-open-sesame"
ESCAPED = SECRET.replace("a", "\\u0061")
PRIVATE = (SECRET, "ann.secret", CARD, PASSWORD, ESCAPED[1:])
RULES: Json = {
    "rules": [
        {"entities": ["email", "credit_card"]},
        {"fields": ["inputs.password", "**.credentials", "tags.secret_tag"]},
        {"pattern": "hunter2-open-(?:sesame|door)", "replacement": "[a password]"},
    ]
}
TRACE = "tr-" + "a" * 32
NESTED = json.dumps({"deep": json.dumps({"mail": f"<{SECRET}>", "list": [CARD, 1.5]})})
CUT = f'{{"mail": "{ESCAPED}", "card": "{CARD}", "more": "...'


def texts_of(value: Any) -> Iterator[str]:
    """Every text in a DynamoDB value, also in compressed ones."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
        for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
            try:
                yield zlib.decompress(value, bits).decode(errors="replace")
            except zlib.error:
                continue
    else:
        yield str(value)


def stored(store: Store, files: Path) -> str:
    """All texts in the table (but the setting) and in files."""
    setting_key = keys.config("redaction")
    parts = [
        text
        for item in store.items()
        if item["SK"]["S"] != setting_key.sk
        for text in texts_of(item)
    ]
    for path in files.rglob("*") if files.exists() else ():
        if path.is_file():
            parts += [str(path), *texts_of(path.read_bytes())]
    return "\n".join(parts)


def assert_nothing_private(store: Store, files: Path) -> None:
    content = stored(store, files).lower()
    assert [text for text in PRIVATE if text.lower() in content] == []


def private_span(number: int = 1, parent: int | None = None, **more: Any) -> Json:
    made = span(
        "a" * 32,
        number,
        parent,
        mlflow__spanInputs=json.dumps({"password": "x1-plain-x1", "mail": SECRET, "in": NESTED}),
        mlflow__spanOutputs=json.dumps([SECRET, {"credentials": {"a": "x1-plain-x1"}}]),
        note=f"cut {CUT}",
        user__id=SECRET,
        session__id=SECRET,
        mlflow__traceTag__secret_tag="x1-plain-x1",
        mlflow__traceTag__other=PASSWORD,
        mlflow__spanType=SECRET,
        **more,
    )
    made["name"] = f"GET /users/{SECRET}"
    made["status"] = {"code": 2, "message": f"failed for {SECRET}"}
    event = {
        "name": f"saw {SECRET}",
        "timeUnixNano": "1700000000000000001",
        "attributes": [{"key": "exception.message", "value": {"stringValue": PASSWORD}}],
    }
    made["events"] = [event]
    made["attributes"].append({"key": SECRET, "value": {"stringValue": "named by a mail"}})
    made["attributes"].append({"key": "bytes", "value": {"bytesValue": "AAE="}})
    made["links"] = [
        {
            "traceId": "b" * 32,
            "spanId": "c" * 16,
            "attributes": [{"key": "l", "value": {"stringValue": SECRET}}],
        }
    ]
    return made
