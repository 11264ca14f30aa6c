"""A provider of a language model that answers at once: OpenAI's chat completions, whole or as a
stream. Run as a process of its own: ``python -m bench.model_provider PORT``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

TOKENS: Final = 50
"""Tokens of an answer; each is an event of a stream."""
PACED: Final = "paced"
"""The model whose streams pause before each token but the first."""
PAUSE_SECONDS: Final = 0.02


def _usage() -> dict[str, int]:
    return {"prompt_tokens": 8, "completion_tokens": TOKENS, "total_tokens": 8 + TOKENS}


def _frame(model: str, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": model}


def _answer(model: str) -> bytes:
    message = {"role": "assistant", "content": " token" * TOKENS}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {**_frame(model, "chat.completion"), "choices": [choice], "usage": _usage()}
    return json.dumps(body).encode()


def _event(model: str, **fields: Any) -> bytes:
    return b"data: " + json.dumps({**_frame(model, "chat.completion.chunk"), **fields}).encode()


def _events(model: str) -> list[bytes]:
    tokens = [
        _event(model, choices=[{"index": 0, "delta": {"content": " token"}, "finish_reason": None}])
        for _ in range(TOKENS)
    ]
    end = _event(model, choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    return [*tokens, end, _event(model, choices=[], usage=_usage()), b"data: [DONE]"]


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = head.partition("content-length:")[2].partition("\r\n")[0]
            body = await reader.readexactly(int(length or 0))
            if head.startswith("get "):
                _write(writer, b"{}")
            else:
                request = json.loads(body)
                if request.get("stream"):
                    await _stream(writer, request["model"])
                else:
                    _write(writer, _answer(request["model"]))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the caller has closed the connection
    finally:
        writer.close()


def _write(writer: asyncio.StreamWriter, body: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)


async def _stream(writer: asyncio.StreamWriter, model: str) -> None:
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked"
    writer.write(head.encode() + b"\r\n\r\n")
    for number, event in enumerate(_events(model)):
        if number and PACED in model:
            await asyncio.sleep(PAUSE_SECONDS)
        text = event + b"\n\n"
        writer.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def _main(port: int) -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
