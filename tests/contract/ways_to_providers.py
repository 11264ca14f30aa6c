"""All ways by which a caller of the gateway gets a text to a provider, in several spellings."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from tests.contract.private_requests import CHAT, CLAUDE, GEMINI, MARK, OPEN, RESPONSES
from tests.contract.raw_requests import Answer, send

Json = dict[str, Any]


class Way(NamedTuple):
    name: str
    send: Callable[[str, str], Answer]
    """Of a text and a spelling."""
    is_refused: bool = False
    """Whether rules refuse the request, because they cannot replace a part of it."""


def _plain(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))


def _nested(text: str) -> str:
    """A JSON text in the text, whose own text has escapes."""
    inner = '{"a": ["' + _escaped(text) + '", 1]}'
    return json.dumps(json.dumps({"deep": inner}))[1:-1]


def _twice(text: str) -> str:
    return json.dumps(_escaped(text))[1:-1]


SPELLINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": _plain,
    "escaped": _escaped,
    "twice": _twice,
    "nested": _nested,
    "in a sentence": lambda text: _plain(f"I am <{text}>, and you?"),
}
"""By name, what stands for the text in a JSON text."""


def spelled(template: Any, text: str, spelling: str) -> bytes:
    body = template if isinstance(template, str) else json.dumps(template)
    return body.replace(MARK, SPELLINGS[spelling](text)).encode()


def _json(name: str, path: str, body: Any, **headers: str) -> Way:
    def go(text: str, spelling: str) -> Answer:
        sent = {"content-type": "application/json"} | {
            key.replace("_", "-"): value for key, value in headers.items()
        }
        return send("POST", path, spelled(body, text, spelling), headers=sent, root="")

    return Way(name, go)


def _raw(
    name: str,
    path: str,
    content: Callable[[str], bytes | None],
    *,
    method: str = "POST",
    headers: Callable[[str], Mapping[str, str]] = lambda _: {},
    query: Callable[[str], str] = lambda _: "",
    is_refused: bool = False,
) -> Way:
    def go(text: str, _spelling: str) -> Answer:
        address = path.replace(MARK, quote(text, safe="@"))
        return send(
            method, address, content(text), headers=headers(text), query=query(text), root=""
        )

    return Way(name, go, is_refused)


def _form(*parts: tuple[str, bytes], boundary: bytes = b"b") -> bytes:
    lines = [
        b"--" + boundary + b"\r\nContent-Disposition: form-data; " + head.encode()
        + b"\r\n\r\n" + value + b"\r\n"
        for head, value in parts
    ]  # fmt: skip
    return b"".join(lines) + b"--" + boundary + b"--\r\n"


FORM: Final = {"content-type": "multipart/form-data; boundary=b"}
BYTES: Final = {"content-type": "application/octet-stream"}
JSON: Final = {"content-type": "application/json"}
BATCHED: Final[Json] = {**CLAUDE, "model": "chat-model"}
"""A batch names the endpoint's model only."""
SAID: Final[list[Json]] = [{"role": "user", "content": "hello"}]


def _ways_of_json() -> Iterator[Way]:
    for path, named in (
        ("mlflow/v1/chat/completions", {"model": "chat"}),
        ("chat/mlflow/invocations", {}),
        ("mlflow/v1/chat/completions", {"model": "claude"}),
        ("mlflow/v1/chat/completions", {"model": "bedrock"}),
        ("mlflow/v1/chat/completions", {"model": "gemini"}),
        ("mlflow/v1/chat/completions", {"model": "falling"}),
    ):
        for more in ({}, {"stream": True}) if named.get("model") != "bedrock" else ({},):
            yield _json(f"{path} {named} {more}", path, {**named, **CHAT, **more})
    for more in ({}, {"stream": True}):
        yield _json(
            f"openai {more}", "openai/v1/chat/completions", {"model": "chat", **OPEN, **more}
        )
        yield _json(f"claude {more}", "anthropic/v1/messages", {**CLAUDE, **more})
        yield _json(f"responses {more}", "openai/v1/responses", {**RESPONSES, **more})
    yield _json("text", "openai/v1/responses", {"model": "chat", "input": MARK})
    yield _json("compact", "openai/v1/responses/compact", RESPONSES)
    yield _json("counted", "anthropic/v1/messages/count_tokens", CLAUDE)
    yield _json("gemini", "gemini/v1beta/models/gemini:generateContent", GEMINI)
    yield _json("gemini v1", "gemini/v1/models/gemini:streamGenerateContent", GEMINI)
    for value in (MARK, ["a", MARK]):
        body = {"model": "chat", "input": value, "user": MARK}
        yield _json(f"embeddings {value}", "mlflow/v1/embeddings", body)
        yield _json(f"openai embeddings {value}", "openai/v1/embeddings", body)
        yield _json(f"invoked {value}", "chat/mlflow/invocations", {"input": value, "user": MARK})
    bodies: tuple[tuple[str, Json], ...] = (
        ("v1/chat/completions", {**OPEN, "model": MARK}),
        ("v1/responses", {**RESPONSES, "model": MARK}),
        ("v1/completions", {"model": "m", "prompt": [MARK], "suffix": MARK}),
        ("v1/messages/batches", {"requests": [{"custom_id": MARK, "params": BATCHED}]}),
        ("v1/anything", {MARK: {MARK: [[MARK]]}}),
    )
    for path, body in bodies:
        yield _json(f"proxy {path}", f"proxy/chat/{path}", body)
    yield _json("no type", "proxy/chat/v1/x", {"a": MARK}, content_type="text/plain")
    twice = '{"model": "chat", "messages": [{"role": "user", "content": "' + MARK + '"}], %s}'
    again = '"messages": [{"role": "user", "content": "hi"}]'
    yield _json("first of two", "openai/v1/chat/completions", twice % again)
    for other in ("mlflow/v1/chat/completions", "openai/v1/chat/completions"):
        last = '{"model": "chat", ' + again + ", " + (twice % '"user": "x"')[1:]
        yield _json(f"last of two {other}", other, last)


def _ways_of_bytes() -> Iterator[Way]:
    def said(text: str) -> bytes:
        return json.dumps(
            {"model": "chat", "messages": [{"role": "user", "content": text}]}
        ).encode()

    def line(text: str) -> bytes:
        request = {"custom_id": "1", "body": {"messages": [{"role": "user", "content": text}]}}
        return b'{"a": 1}\n' + spelled(request | {"x": MARK}, text, "escaped") + b"\n{}\n"

    def packed(text: str) -> str:
        return base64.b64encode(f"to {text}".encode()).decode()

    for name, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        yield _raw(
            name,
            "openai/v1/chat/completions",
            lambda text, pack=pack: pack(said(text)),  # type: ignore[misc]
            headers=lambda _, name=name: {**JSON, "content-encoding": name},  # type: ignore[misc]
        )
    for codec in ("utf-16", "utf-32-le", "utf-8-sig"):
        yield _raw(
            codec,
            "openai/v1/chat/completions",
            lambda text, codec=codec: said(text).decode().encode(codec),  # type: ignore[misc]
            headers=lambda _: JSON,
        )
    for kind, member in (
        ("file", lambda data: {"file": {"file_data": f"data:text/plain;base64,{data}"}}),
        ("picture", lambda data: {"image_url": {"url": f"data:image/png;base64,{data}"}}),
        ("typed", lambda data: {"source": {"media_type": "text/plain", "data": data}}),
        ("named", lambda data: {"inlineData": {"mimeType": "text/csv", "data": data}}),
    ):
        yield _raw(
            f"base64 {kind}",
            "proxy/chat/v1/x",
            lambda text, member=member: json.dumps({"a": [member(packed(text))]}).encode(),  # type: ignore[misc]
            headers=lambda _: JSON,
        )
    yield _raw(
        "request to count at Bedrock",
        "proxy/bedrock/model/bedrock/count-tokens",
        lambda text: json.dumps(
            {"input": {"invokeModel": {"body": _base64(json.dumps({"system": text}).encode())}}}
        ).encode(),
        headers=lambda _: JSON,
    )
    yield _raw(
        "field",
        "proxy/chat/v1/audio/transcriptions",
        lambda text: _form(('name="prompt"', text.encode()), ('name="x[a]"', line(text))),
        headers=lambda _: FORM,
    )
    yield _raw(
        "file",
        "proxy/chat/v1/files",
        lambda text: _form(
            ('name="purpose"', b"batch"),
            ('name="file"; filename="b.jsonl"', line(text)),
            ('name="g"; filename="c.txt"', b"\xef\xbb\xbf" + line(text)),
        ),
        headers=lambda _: FORM,
    )
    yield _raw("bytes", "proxy/chat/v1/upload", line, headers=lambda _: BYTES)
    yield _raw("sound", "proxy/chat/v1/up", line, headers=lambda _: {"content-type": "audio/wav"})
    for name in ("x-note", "user-agent", "anthropic-beta", "cookie", "openai-organization"):
        yield _raw(
            f"header {name}",
            "proxy/chat/v1/x",
            lambda _: b"{}",
            headers=lambda text, name=name: {**JSON, name: f"a {_ascii(text)}"},  # type: ignore[misc]
        )
    yield _raw(
        "header of a chat",
        "openai/v1/chat/completions",
        lambda _: said("hi"),
        headers=lambda text: {**JSON, "x-note": _ascii(text), _ascii(text): "x"},
    )


def _ways_refused() -> Iterator[Way]:
    """Rules cannot replace a part of these."""

    def refused(name: str, path: str, content: Any, **more: Any) -> Way:
        return _raw(name, path, content, is_refused=True, **more)

    for method in ("GET", "DELETE"):
        yield refused(
            f"path {method}", f"proxy/chat/v1/files/{MARK}", lambda _: None, method=method
        )
    yield refused("path", f"proxy/chat/v1/models/{MARK}:x", lambda _: b"{}", headers=lambda _: JSON)
    for name, query in (
        ("value", lambda text: f"a=b&c={quote(text)}"),
        ("name", lambda text: f"{quote(text)}=1"),
        ("twice", lambda text: f"a={quote(quote(text))}"),
    ):
        yield refused(f"query {name}", "proxy/chat/v1/x", lambda _: None, method="GET", query=query)
    for name, headers in (
        ("name", lambda text: f'name="{text}"'),
        ("file name", lambda text: f'name="a"; filename="{text}.txt"'),
        ("type", lambda text: f'name="a"\r\nContent-Type: text/{text}'),
    ):
        yield refused(
            f"form {name}",
            "proxy/chat/v1/files",
            lambda text, headers=headers: _form((headers(text), b"x")),
            headers=lambda _: FORM,
        )
    yield refused(
        "type",
        "proxy/chat/v1/up",
        lambda _: b"x",
        headers=lambda text: {"content-type": f"audio/wav; name={_ascii(text)}"},
    )
    for name, pack in (
        ("zipped", lambda text: gzip.compress(text.encode())),
        ("half", lambda text: text.encode() + b"\xff"),
        ("utf-16", lambda text: text.encode("utf-16-le")),
    ):
        yield refused(
            f"bytes {name}",
            "proxy/chat/v1/up",
            lambda text, pack=pack: pack(f"to {text}"),
            headers=lambda _: BYTES,
        )
        yield refused(
            f"field {name}",
            "proxy/chat/v1/up",
            lambda text, pack=pack: _form(('name="a"', pack(f"to {text}"))),
            headers=lambda _: FORM,
        )
        yield refused(
            f"base64 {name}",
            "proxy/chat/v1/x",
            lambda text, pack=pack: json.dumps(
                {"inline_data": {"mime_type": "x/y", "data": _base64(pack(f"to {text}"))}}
            ).encode(),
            headers=lambda _: JSON,
        )
    yield refused(
        "login",
        "proxy/chat/v1/x",
        lambda _: b"{}",
        headers=lambda text: {
            **JSON,
            "user-agent": "claude-cli/1",
            "x-api-key": _ascii(text),
        },
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _ascii(text: str) -> str:
    """A text as headers can have it."""
    return text if text.isascii() else _escaped(text)


WAYS: Final = (*_ways_of_json(), *_ways_of_bytes(), *_ways_refused())
