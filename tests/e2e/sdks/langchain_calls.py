"""LangChain's chat models of OpenAI, Anthropic and Google: invoke, stream, bind_tools,
with_structured_output, embeddings, errors."""

from __future__ import annotations

from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_google_genai import ChatGoogleGenerativeAI, GoogleGenerativeAIEmbeddings
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field, SecretStr

from tests.e2e.sdks.observing import (
    CLAUDE,
    GEMINI,
    GPT,
    PIXEL,
    SHORT,
    STREAM_FAILURES,
    Call,
    Target,
    failures,
    main,
)

SAID = [SystemMessage("Be brief."), HumanMessage("Grüezi")]


class City(BaseModel):
    """A city."""

    city: str = Field(description="Its name")
    population: int


def lookup(city: str, population: int) -> str:
    """Finds a city."""
    return f"{city}: {population}"


def calls_at(target: Target) -> dict[str, Call]:
    key: Any = SecretStr(target.key)
    base: dict[str, Any] = {"api_key": key, "max_retries": 0}
    openai: dict[str, Any] = {
        **base,
        "model": GPT,
        "base_url": target.openai,
        "default_headers": target.headers,
    }
    anthropic: dict[str, Any] = {
        **base,
        "model_name": CLAUDE,
        "base_url": target.anthropic,
        "default_headers": target.headers,
    }
    google: dict[str, Any] = {
        **base,
        "max_retries": 1,  # attempts, as Google's SDK counts them
        "model": GEMINI,
        "base_url": target.gemini,
        "additional_headers": target.headers,
    }
    calls: dict[str, Call] = {}
    for name, model, impatient in (
        ("openai", ChatOpenAI(**openai), ChatOpenAI(**openai, timeout=SHORT)),
        (
            "responses",
            ChatOpenAI(**openai, use_responses_api=True),
            ChatOpenAI(**openai, use_responses_api=True, timeout=SHORT),
        ),
        ("anthropic", ChatAnthropic(**anthropic), ChatAnthropic(**anthropic, timeout=SHORT)),
        (
            "google",
            ChatGoogleGenerativeAI(**google),
            ChatGoogleGenerativeAI(**google, timeout=SHORT),
        ),
    ):
        calls |= {f"{name}: {what}": call for what, call in _chats(model, impatient).items()}
    # Without a tokenizer, which would be fetched.
    vectors = OpenAIEmbeddings(
        model=GPT,
        api_key=key,
        base_url=target.openai,
        default_headers=target.headers,
        check_embedding_ctx_length=False,
    )
    calls["openai: embeddings"] = lambda: vectors.embed_documents(["a", "bcd"])
    if target.is_everything:
        google_vectors = GoogleGenerativeAIEmbeddings(
            model="gemini-embedding-001",
            google_api_key=key,
            base_url=target.gemini,
            additional_headers=target.headers,
        )
        calls["google: embeddings"] = lambda: google_vectors.embed_query("a")
    return calls


def _chats(model: Any, impatient: Any) -> dict[str, Call]:
    data = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    looked = [HumanMessage([{"type": "text", "text": "What is it?"}, data])]
    call = {"name": "lookup", "args": {"city": "Zürich", "population": 1}, "id": "call_1"}
    results = [
        HumanMessage("Zürich?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("it is", tool_call_id="call_1", name="lookup"),
    ]
    return {
        "invoke": lambda: model.invoke(SAID),
        "stream": lambda: list(model.stream(SAID)),
        "tools": lambda: model.bind_tools([lookup]).invoke(SAID),
        "streamed tools": lambda: list(model.bind_tools([lookup]).stream(SAID)),
        "results of tools": lambda: model.invoke(results),
        "structured": lambda: model.with_structured_output(City, include_raw=True).invoke("city"),
        "picture": lambda: model.invoke(looked),
        **failures("invoke", model.invoke),
        "again": lambda: model.invoke(SAID),
        **failures("stream", lambda text: list(model.stream(text)), STREAM_FAILURES),
        "timeout": lambda: impatient.invoke("wait"),
    }


main(calls_at)
