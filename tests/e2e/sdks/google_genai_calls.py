"""Google's SDK ``google-genai``: contents, streams, functions, structured answers, pictures,
counts, embeddings, errors."""

from __future__ import annotations

import base64
from typing import Any

from google import genai
from google.genai import types

from tests.e2e.sdks.observing import (
    CITY,
    GEMINI,
    PIXEL,
    SHORT,
    STREAM_FAILURES,
    Call,
    City,
    Target,
    failures,
    main,
)


def without_transport(answer: Any) -> Any:
    """An answer without the HTTP answer that the SDK keeps beside it."""
    return answer.model_dump(exclude={"sdk_http_response"}, warnings=False), type(answer).__name__


def calls_at(target: Target) -> dict[str, Call]:
    def client_with(**more: Any) -> Any:
        options: Any = {"base_url": target.gemini, "headers": target.headers, **more}
        return genai.Client(api_key=target.key, http_options=types.HttpOptions(**options))

    client = client_with()
    models = client.models
    impatient = client_with(timeout=int(SHORT * 1000))
    stable = client_with(api_version="v1")
    declared = [
        types.FunctionDeclaration(
            name="lookup", description="Of a city", parameters_json_schema=CITY
        ),
        types.FunctionDeclaration(name="now"),
    ]
    tools = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)])
    structured = types.GenerateContentConfig(
        response_mime_type="application/json", response_schema=City
    )
    pictures = [
        types.Part.from_bytes(data=base64.b64decode(PIXEL), mime_type="image/png"),
        types.Part.from_uri(file_uri="https://example.com/a.png", mime_type="image/png"),
        "What is it?",
    ]
    results = [
        types.UserContent("Zürich?"),
        types.ModelContent(types.Part.from_function_call(name="now", args={})),
        types.UserContent(types.Part.from_function_response(name="now", response={"now": "noon"})),
    ]

    def generate(contents: Any, **more: Any) -> Any:
        return without_transport(models.generate_content(model=GEMINI, contents=contents, **more))

    def stream(contents: Any, **more: Any) -> Any:
        parts = models.generate_content_stream(model=GEMINI, contents=contents, **more)
        return [without_transport(part) for part in parts]

    def parsed() -> Any:
        answer = models.generate_content(model=GEMINI, contents="city", config=structured)
        return answer.parsed

    # A client that is collected closes its connections.
    calls: dict[str, Call] = {
        "client": lambda: len([client, impatient, stable]),
        "content": lambda: generate("Grüezi"),
        "content of version 1": lambda: without_transport(
            stable.models.generate_content(model=GEMINI, contents="hi")
        ),
        "configured": lambda: generate(
            "hi", config=types.GenerateContentConfig(temperature=0, system_instruction="Be brief.")
        ),
        "stream": lambda: stream("Grüezi"),
        "functions": lambda: generate("hi", config=tools),
        "streamed functions": lambda: stream("hi", config=tools),
        "results of functions": lambda: generate(results, config=tools),
        "parsed": parsed,
        "streamed json": lambda: stream("city", config=structured),
        "pictures": lambda: generate(pictures),
        **failures("content", generate),
        "content again": lambda: generate("hi"),
        **failures("stream", stream, STREAM_FAILURES),
        "timeout": lambda: impatient.models.generate_content(model=GEMINI, contents="wait"),
    }
    if target.is_everything:
        calls |= {
            "count of tokens": lambda: without_transport(
                models.count_tokens(model=GEMINI, contents="hi")
            ),
            "embeddings": lambda: without_transport(
                models.embed_content(model="gemini-embedding-001", contents=["a", "b"])
            ),
            "one embedding": lambda: without_transport(
                models.embed_content(model="gemini-embedding-2", contents="a")
            ),
        }
    return calls


main(calls_at)
