"""What redaction of an export costs. ``pytest -s`` on this file prints the milliseconds."""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

import pytest

from mlcore.redaction.rules import parsed
from mlcore.spans import span_redaction

RULES = {
    "rules": [
        {
            "entities": [
                "email",
                "credit_card",
                "iban",
                "phone",
                "ip_address",
                "aws_key",
                "bearer_token",
            ]
        },
        {"fields": ["inputs.password", "**.credentials", "tags.secret_tag"]},
        {"pattern": "hunter2-open-(?:sesame|door)"},
        {"pattern": r"\b(?:PROJ|ACME)-[0-9]{4,6}\b"},
        {"fields": ["inputs.user.ssn"], "replacement": "[ssn]"},
    ]
}
WORDS = (
    "The quick brown fox jumps over the lazy dog while 12 engineers review the 2024-05-01 report, "
    "see https://example.org/docs/page?id=1234 for details.\n"
)
SPANS = 10


def chat_span(number: int, content: str) -> Any:
    """A span of a chat, of 3 KB."""
    system = {"role": "system", "content": WORDS}
    messages = [system, {"role": "user", "content": content}]
    answer = {"role": "assistant", "content": content}
    usage = {"input_tokens": 120, "output_tokens": 55, "total_tokens": 175}
    attributes = {
        "mlflow.traceRequestId": json.dumps("tr-" + "a" * 32),
        "mlflow.spanType": '"CHAT_MODEL"',
        "mlflow.spanInputs": json.dumps({"messages": messages, "model": "gpt-4o", "top_p": 1}),
        "mlflow.spanOutputs": json.dumps({"id": f"c-{number}", "choices": [{"message": answer}]}),
        "mlflow.llm.model": '"gpt-4o"',
        "mlflow.llm.provider": '"openai"',
        "mlflow.chat.tokenUsage": json.dumps(usage),
    }
    return {
        "trace_id": "AAAAAAAAAAAAAAAAAAAAAQ==",
        "span_id": "AAAAAAAAAAE=",
        "parent_span_id": None,
        "name": "ChatCompletion",
        "kind": "SPAN_KIND_INTERNAL",
        "start_time_unix_nano": 1,
        "end_time_unix_nano": 2,
        "events": [],
        "links": [],
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": attributes,
    }


def milliseconds(contents: list[str]) -> float:
    """The least processor time of redacting an export whose spans have these contents."""
    rules = parsed(RULES)
    resource: dict[str, Any] = {}
    spans = [(chat_span(number, content), resource) for number, content in enumerate(contents)]
    times = []
    for _ in range(20):
        redactor = rules.redactor("default", "1")
        assert redactor is not None
        started = time.process_time()
        stored = span_redaction.spans(redactor, spans)
        times.append(time.process_time() - started)
        are_kept = [new is old for (new, _), (old, _) in zip(stored, spans, strict=True)]
        assert are_kept == ["@" not in content for content in contents]
    return 1_000 * min(times)


@pytest.mark.parametrize(
    ("kind", "most"), [("repeated", 15), ("distinct", 25), ("with a match in each", 300)]
)
def test_an_export_of_ten_spans(kind: str, most: float) -> None:
    """The limits leave ten times the usual time for a busy machine."""
    contents = [WORDS * 6] * SPANS
    if kind == "distinct":
        words = WORDS.split(" ") * 6
        contents = [" ".join(random.Random(n).sample(words, len(words))) for n in range(SPANS)]
    elif kind != "repeated":
        contents = [f"{content} mail ann@example.com" for content in contents]
    spent = milliseconds(contents)
    sys.stdout.write(f"{SPANS} spans, texts {kind}: {spent:.2f} ms\n")
    assert spent < most
