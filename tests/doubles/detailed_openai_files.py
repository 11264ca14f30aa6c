"""The parts of OpenAI's API that are no POST of JSON, in detail: files, batches, pictures, sound,
models. Everything else is that of :mod:`tests.doubles.detailed_openai`."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from tests.doubles import detailed_openai
from tests.doubles.providers import Asked, Json, Told

LINES: Final = '{"custom_id": "1", "response": {"body": {"text": "Grüezi"}}}\n'.encode() * 3
SOUND: Final = bytes(range(256)) * 8
_FILE: Final[Json] = {
    "id": "file-abc123",
    "object": "file",
    "bytes": 120000,
    "created_at": 1741569952,
    "expires_at": None,
    "filename": "lines.jsonl",
    "purpose": "batch",
    "status": "processed",
    "status_details": None,
}
_BATCH: Final[Json] = {
    "id": "batch_abc123",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "errors": None,
    "input_file_id": "file-abc123",
    "completion_window": "24h",
    "status": "completed",
    "output_file_id": "file-cvaTdG",
    "error_file_id": None,
    "created_at": 1741569952,
    "request_counts": {"total": 100, "completed": 95, "failed": 5},
    "metadata": {"of": "ü"},
}
_MODEL: Final[Json] = {
    "id": "gpt-4o",
    "object": "model",
    "created": 1741569952,
    "owned_by": "openai",
}
_PICTURE: Final[Json] = {
    "created": 1741569952,
    "data": [{"b64_json": base64.b64encode(SOUND).decode(), "revised_prompt": "a cat"}],
    "usage": {
        "total_tokens": 100,
        "input_tokens": 50,
        "output_tokens": 50,
        "input_tokens_details": {"text_tokens": 10, "image_tokens": 40},
    },
}


def answer(request: Asked) -> Told:
    path = re.sub(r"^.*?/v1/", "", request.path.partition("?")[0])
    told = _told(request, f"{request.method} {path}")
    return detailed_openai.answer(request) if told is None else told


def _told(request: Asked, asked: str) -> Told | None:
    if asked == "GET files/file-none":
        return Told(404, {"error": detailed_openai.FAILURES[404]})
    if asked == "GET files/file-abc123/content":
        return Told(body=LINES, content_type="application/octet-stream")
    if asked == "POST audio/speech":
        return Told(body=SOUND, content_type="audio/mpeg")
    if asked == "POST audio/transcriptions" and b"\r\ntext\r\n" in request.raw:
        return Told(body="Grüezi\n".encode(), content_type="text/plain; charset=utf-8")
    body: Any = {
        "POST files": _FILE,
        "GET files": _list(_FILE),
        "GET files/file-abc123": _FILE,
        "DELETE files/file-abc123": {"id": "file-abc123", "object": "file", "deleted": True},
        "POST batches": _BATCH,
        "GET batches": _list(_BATCH),
        "GET batches/batch_abc123": _BATCH,
        "POST batches/batch_abc123/cancel": {**_BATCH, "status": "cancelling"},
        "GET models": _list(_MODEL),
        "GET models/gpt-4o": _MODEL,
        "POST images/generations": _PICTURE,
        "POST images/edits": _PICTURE,
        "POST audio/transcriptions": {
            "text": "Grüezi",
            "usage": {"type": "duration", "seconds": 2},
        },
    }.get(asked)
    return None if body is None else Told(body=body)


def _list(member: Json) -> Json:
    ids = {"first_id": member["id"], "last_id": member["id"]}
    return {"object": "list", "data": [member], **ids, "has_more": False}
