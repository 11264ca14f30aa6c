"""Rules for providers leave ordinary requests as they are, and let no private text through."""

from __future__ import annotations

import time
from typing import Any, Final

import pytest

from mlcore.gateway.request_redaction import RequestRedaction
from mlcore.redaction.rules import parsed

Json = dict[str, Any]

KINDS: Final[dict[str, Json]] = {
    "entities": {"entities": ["email", "credit_card"]},
    "pattern": {"pattern": "hunter2[a-z]{6}"},
    "fields": {"fields": ["inputs.metadata.user_id"]},
}


def redaction(kind: str, **more: Any) -> RequestRedaction:
    rule = {**KINDS[kind], "apply_to": ["providers"], **more}
    rules = parsed({"rules": [rule]}).of_request("default", "", "e-1")
    assert rules is not None
    return RequestRedaction(rules)


SCHEMA: Final[Json] = {
    "type": ["object", "null"],
    "properties": {
        "type": {"type": "string", "enum": ["a", None]},
        "input": {"type": ["string", "null"]},
        "args": {"type": {"description": "of any form"}},
    },
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [{}, {"unsearchable": "send"}])
def test_schemas_whose_types_are_no_texts(kind: str, more: Json) -> None:
    for schema in (SCHEMA, {"type": {"args": SCHEMA}, "input": SCHEMA, "args": [SCHEMA]}):
        body = {"tools": [{"type": "function", "function": {"parameters": schema}}]}
        assert redaction(kind, **more).body(body) is body


def test_the_time_grows_with_the_length() -> None:
    """Also of objects with many members and many texts."""
    body = {**{f"m{number}": "a" for number in range(20_000)}, "data": ["b"] * 20_000}
    started = time.thread_time()
    assert redaction("entities").body(body) is body
    assert time.thread_time() - started < 5, "for each text, each name is read"
