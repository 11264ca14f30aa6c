"""A provider of files, batches, sound and pictures for requests through the gateway's proxy."""

from __future__ import annotations

from tests.doubles.providers import Asked, Told

FORM = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.mp3"\r\n\r\n'
    b"\x00\xff\r\n--b--\r\n"
)
FORM_TYPE = "multipart/form-data; boundary=b"
SPEECH = bytes(range(256)) * 4


def always(told: Told, _request: Asked) -> Told:
    return told


def answers(request: Asked) -> Told:
    """Files, batches, sound and pictures of OpenAI's API, in short."""
    path = request.path.partition("?")[0]
    if path.endswith("/audio/speech"):
        return Told(body=SPEECH, content_type="audio/mpeg")
    if path.endswith("/content"):
        return Told(body=b'{"a": "text"}\n' * 40, content_type="application/jsonl")
    if path.endswith("/page"):
        return Told(body=b"<script>alert(1)</script>", content_type="text/html")
    if request.method == "DELETE":
        return Told(body={"id": path.rpartition("/")[2], "object": "file", "deleted": True})
    if path.endswith("/batches/b1"):
        usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
        return Told(body={"id": "b1", "object": "batch", "status": "completed", "usage": usage})
    told = {"id": "r1", "object": "response", "text": "x" * 400, "path": request.path}
    usage = {"input_tokens": 70, "output_tokens": 80, "total_tokens": 150}
    is_background = path.endswith("/responses/background")
    return Told(body={**told, "background": is_background, "usage": usage})
