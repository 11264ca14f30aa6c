"""Providers of language models: local servers that speak their protocols, as their public
specifications tell them, and remember what they were asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple

Json = dict[str, Any]


class Asked(NamedTuple):
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: Json
    raw: bytes = b""
    """The body as it came."""
    method: str = "POST"


class Told(NamedTuple):
    """An answer: a JSON object, bytes of any type, or the parts of a stream."""

    status: int = 200
    body: Any = None
    parts: tuple[str | bytes, ...] = ()
    content_type: str = "application/json"
    pause: float = 0.0
    """Seconds after each part."""
    headers: Mapping[str, str] = MappingProxyType({})


class Provider:
    """A server on this machine. ``answer`` may be replaced while it runs."""

    def __init__(self, answer: Callable[[Asked], Told]) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                self.do_POST()

            def do_DELETE(self) -> None:
                self.do_POST()

            def do_PATCH(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                is_json = body and self.headers.get_content_type() == "application/json"
                request = Asked(
                    self.path,
                    {name.lower(): value for name, value in self.headers.items()},
                    json.loads(body) if is_json else {},
                    body,
                    self.command,
                )
                outer.asked.append(request)
                response = outer.answer(request)
                self.send_response(response.status)
                self.send_header("content-type", response.content_type)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                if response.parts:
                    self.send_header("connection", "close")
                    self.end_headers()
                    self.close_connection = True
                    with suppress(OSError):  # nobody listens any more
                        for part in response.parts:
                            self.wfile.write(part.encode() if isinstance(part, str) else part)
                            self.wfile.flush()
                            time.sleep(response.pause)
                    return
                content = response.body
                if not isinstance(content, bytes):
                    content = json.dumps(content).encode()
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                with suppress(OSError):  # nobody waits any more
                    self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def serving(answer: Callable[[Asked], Told]) -> Iterator[Provider]:
    provider = Provider(answer)
    try:
        yield provider
    finally:
        provider.close()


def events(*payloads: Any, named: bool = False, done: bool = True) -> Told:
    """A stream of server-sent events.

    Args:
        named: whether each event has its type as a name before it, as Anthropic's have.
        done: whether ``[DONE]`` ends it, as OpenAI's streams end.
    """
    parts = tuple(
        (f"event: {payload['type']}\n" if named else "") + f"data: {json.dumps(payload)}\n\n"
        for payload in payloads
    )
    end = ("data: [DONE]\n\n",) if done else ()
    return Told(parts=(*parts, *end), content_type="text/event-stream")


def openai(request: Asked) -> Told:
    """A model at OpenAI that repeats what it is told, and calls the tools that it is given."""
    body = request.body
    if request.path.endswith("/embeddings"):
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        data = [
            {"object": "embedding", "index": i, "embedding": [0.5, float(len(text))]}
            for i, text in enumerate(texts)
        ]
        used = {"prompt_tokens": 3, "total_tokens": 3}
        return Told(body={"object": "list", "data": data, "model": body["model"], "usage": used})
    if request.path.endswith("/responses"):
        return _responses(body)
    text = _last(body["messages"])
    used = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    if not body.get("stream"):
        message: Json = {"role": "assistant", "content": f"echo: {text}", "refusal": None}
        finish = "stop"
        if body.get("tools"):
            name = body["tools"][0]["function"]["name"]
            call = {"name": name, "arguments": json.dumps({"city": text})}
            message |= {
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
            }
            finish = "tool_calls"
        return Told(
            body={
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1700000000,
                "model": body["model"],
                "choices": [
                    {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
                ],
                "usage": used,
                "system_fingerprint": "fp_1",
            }
        )
    head = {
        "id": "chatcmpl-2",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": body["model"],
    }
    deltas = [
        {"role": "assistant", "content": ""},
        *({"content": word} for word in ("echo: ", *text.split(" "))),
    ]
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": used})
    return events(*chunks)


def _responses(body: Json) -> Told:
    text = body["input"] if isinstance(body["input"], str) else body["input"][-1]["content"]
    part = {"type": "output_text", "text": f"echo: {text}", "annotations": []}
    output = {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }
    answer = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "model": body["model"],
        "output": [output],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 5,
            "output_tokens": 4,
            "total_tokens": 9,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }
    return Told(body=answer)


def anthropic(request: Asked) -> Told:
    """A model at Anthropic that repeats what it is told, and uses the tools that it is given."""
    body = request.body
    text = _last(body["messages"])
    used = {"input_tokens": 10, "output_tokens": 6, "cache_read_input_tokens": 4}
    head = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "stop_sequence": None,
    }
    if body.get("stream"):
        begun = {**head, "content": [], "stop_reason": None, "usage": {**used, "output_tokens": 1}}
        words = [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": w}}
            for w in ("echo: ", *text.split(" "))
        ]
        block = {"type": "text", "text": ""}
        ended = {"stop_reason": "end_turn", "stop_sequence": None}
        return events(
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "ping"},
            *words,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 6}},
            {"type": "message_stop"},
            named=True,
            done=False,
        )
    content: Json = {"type": "text", "text": f"echo: {text}"}
    stop = "end_turn"
    if body.get("tools"):
        name = body["tools"][0]["name"]
        content = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"city": text}}
        stop = "tool_use"
    return Told(body={**head, "content": [content], "stop_reason": stop, "usage": used})


def gemini(request: Asked) -> Told:
    """A model of Gemini's that repeats what it is told; by OpenAI's protocol as well."""
    if "/openai/" in request.path:
        return openai(request)
    text = request.body["contents"][-1]["parts"][0]["text"]
    used = {"promptTokenCount": 8, "candidatesTokenCount": 5, "totalTokenCount": 13}
    content = {"role": "model", "parts": [{"text": f"echo: {text}"}]}
    answer = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": used,
        "modelVersion": "gemini-x",
    }
    if ":streamGenerateContent" in request.path:
        return events(answer, done=False)
    return Told(body=answer)


def saying(text: str | None) -> Callable[[Asked], Told]:
    """A model at OpenAI that says the same whatever it is asked, at once."""

    def answer(request: Asked) -> Told:
        body = openai(request._replace(body={**request.body, "stream": False})).body
        message = {"role": "assistant", "content": text}
        return Told(body={**body, "choices": [{**body["choices"][0], "message": message}]})

    return answer


def failing(status: int, message: str = "the model is overloaded") -> Callable[[Asked], Told]:
    """A provider that refuses everything."""
    return lambda request: Told(status, {"error": {"message": message, "type": "server_error"}})


def _last(messages: list[Json]) -> str:
    content = messages[-1]["content"]
    if isinstance(content, list):
        return str(content[-1].get("text", content[-1].get("content", "")))
    return str(content)


class Busy:
    """A provider that takes a moment, and counts the calls that it has at the same time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._counting = threading.Lock()
        self._open = self.most = 0

    def __call__(self, request: Asked) -> Told:
        with self._counting:
            self._open += 1
            self.most = max(self.most, self._open)
        time.sleep(self._seconds)
        with self._counting:
            self._open -= 1
        return openai(request)
