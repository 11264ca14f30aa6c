"""OpenAI's SDK: chats, streams, tools, structured answers, pictures, embeddings, responses,
errors."""

from __future__ import annotations

import base64
from typing import Any

import openai

from tests.e2e.sdks.observing import (
    CITY,
    GPT,
    PIXEL,
    SHORT,
    STREAM_FAILURES,
    Call,
    City,
    Target,
    failures,
    main,
)

SAID: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Grüezi"},
]
TOOL: Any = {
    "type": "function",
    "function": {"name": "lookup", "description": "Of a city", "parameters": CITY, "strict": True},
}
TIME: Any = {
    "type": "function",
    "function": {"name": "now", "parameters": {"type": "object", "properties": {}}},
}


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def calls_at(target: Target) -> dict[str, Call]:
    client: Any = openai.OpenAI(
        base_url=target.openai, api_key=target.key, default_headers=target.headers, max_retries=0
    )
    chat, responses = client.chat.completions, client.responses
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    linked = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    text = {"type": "text", "text": "What is it?"}
    results: list[Any] = [
        *said("Zürich?"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "noon"},
    ]
    schema = {"name": "city", "schema": CITY, "strict": True}
    response_tool = {"type": "function", "name": "lookup", "parameters": CITY, "strict": True}
    look = {"role": "user", "content": [{"type": "input_text", "text": "Look"}]}
    look_picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}

    def streamed_by_helper() -> Any:
        with chat.stream(model=GPT, messages=said("city"), response_format=City) as stream:
            kinds = [event.type for event in stream]
            return kinds, stream.get_final_completion()

    def response_by_helper() -> Any:
        with responses.stream(model=GPT, input="hi", text_format=City) as stream:
            kinds = [event.type for event in stream]
            return kinds, stream.get_final_response().output_parsed

    others = _files(client) if target.is_everything else {}
    return {
        **others,
        "chat": lambda: chat.create(model=GPT, messages=SAID, temperature=0, seed=7, user="ä"),
        "several choices": lambda: chat.create(model=GPT, messages=SAID, n=2, logprobs=True),
        "stream": lambda: list(
            chat.create(
                model=GPT, messages=SAID, stream=True, stream_options={"include_usage": True}
            )
        ),
        "stream without usage": lambda: list(chat.create(model=GPT, messages=SAID, stream=True)),
        "stream that forbids usage": lambda: list(
            chat.create(
                model=GPT, messages=SAID, stream=True, stream_options={"include_usage": False}
            )
        ),
        "tools": lambda: chat.create(model=GPT, messages=SAID, tools=[TOOL, TIME]),
        "streamed tools": lambda: list(
            chat.create(model=GPT, messages=SAID, tools=[TOOL, TIME], stream=True)
        ),
        "results of tools": lambda: chat.create(model=GPT, messages=results, tools=[TIME]),
        "json object": lambda: chat.create(
            model=GPT, messages=said("json"), response_format={"type": "json_object"}
        ),
        "json schema": lambda: chat.create(
            model=GPT,
            messages=said("json"),
            response_format={"type": "json_schema", "json_schema": schema},
        ),
        "parsed": lambda: chat.parse(model=GPT, messages=said("city"), response_format=City),
        "parsed stream": streamed_by_helper,
        "picture": lambda: chat.create(
            model=GPT, messages=[{"role": "user", "content": [text, picture, linked]}]
        ),
        "embeddings": lambda: client.embeddings.create(model=GPT, input=["a", "bcd"]),
        "embeddings as numbers": lambda: client.embeddings.create(
            model=GPT, input="abc", encoding_format="float", dimensions=3
        ),
        "response": lambda: responses.create(model=GPT, input="hi", instructions="Be brief."),
        "streamed response": lambda: list(responses.create(model=GPT, input="hi", stream=True)),
        "response with tools": lambda: responses.create(
            model=GPT, input=[{"role": "user", "content": "hi"}], tools=[response_tool]
        ),
        "streamed response with tools": lambda: list(
            responses.create(model=GPT, input="hi", tools=[response_tool], stream=True)
        ),
        "response with picture": lambda: responses.create(
            model=GPT, input=[{**look, "content": [*look["content"], look_picture]}]
        ),
        "parsed response": lambda: responses.parse(model=GPT, input="hi", text_format=City),
        "parsed response stream": response_by_helper,
        **failures("chat", lambda text: chat.create(model=GPT, messages=said(text))),
        **failures(
            "stream",
            lambda text: list(chat.create(model=GPT, messages=said(text), stream=True)),
            STREAM_FAILURES,
        ),
        **failures("response", lambda text: responses.create(model=GPT, input=text)),
        "chat again": lambda: chat.create(model=GPT, messages=SAID),
        "timeout": lambda: client.with_options(timeout=SHORT).chat.completions.create(
            model=GPT, messages=said("wait")
        ),
        "timeout of a stream": lambda: list(
            client.with_options(timeout=SHORT).chat.completions.create(
                model=GPT, messages=said("wait"), stream=True
            )
        ),
    }


def _files(client: Any) -> dict[str, Call]:
    """Calls that are no POST of JSON, or whose answers are bytes."""
    picture = ("a.png", base64.b64decode(PIXEL), "image/png")
    sound = ("a.mp3", bytes(range(256)), "audio/mpeg")
    files, batches, images, audio = client.files, client.batches, client.images, client.audio
    lines = b'{"custom_id": "1"}\n'
    return {
        "upload": lambda: files.create(file=("lines.jsonl", lines), purpose="batch"),
        "file": lambda: files.retrieve("file-abc123"),
        "no file": lambda: _status_of(lambda: files.retrieve("file-none")),
        "files": lambda: files.list(limit=2, after="file-a b").data,
        "content": lambda: files.content("file-abc123").read(),
        "deletion": lambda: files.delete("file-abc123"),
        "batch": lambda: batches.create(
            input_file_id="file-abc123",
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"of": "ü"},
        ),
        "batch later": lambda: batches.retrieve("batch_abc123"),
        "batches": lambda: batches.list().data,
        "cancelled batch": lambda: batches.cancel("batch_abc123"),
        "models": lambda: client.models.list().data,
        "model": lambda: client.models.retrieve("gpt-4o"),
        "drawing": lambda: images.generate(model="gpt-image-1", prompt="a cat"),
        "edited picture": lambda: images.edit(model="gpt-image-1", image=picture, prompt="ü"),
        "speech": lambda: audio.speech.create(model="tts-1", voice="alloy", input="hi").read(),
        "transcription": lambda: audio.transcriptions.create(model="whisper-1", file=sound),
        "transcription as text": lambda: audio.transcriptions.create(
            model="whisper-1", file=sound, response_format="text"
        ),
    }


def _status_of(call: Call) -> Any:
    try:
        return call()
    except openai.NotFoundError as error:
        return error.status_code, str(error)


main(calls_at)
