"""Gemini: chats and embeddings by OpenAI's protocol, which Google's API speaks beside its own, and
its own as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote

from mlcore.providers import transport
from mlcore.providers.openai import Compatible, below
from mlcore.providers.provider import (
    GEMINI_GENERATE_CONTENT,
    GEMINI_STREAM_GENERATE_CONTENT,
    Json,
    counted,
    foreign,
)

_BASE: Final = "https://generativelanguage.googleapis.com/v1beta"


class Gemini(Compatible):
    display_name = "Gemini"
    passed_on: ClassVar[Mapping[str, str]] = {
        **Compatible.passed_on,
        GEMINI_GENERATE_CONTENT: "models/{model}:generateContent",
        GEMINI_STREAM_GENERATE_CONTENT: "models/{model}:streamGenerateContent?alt=sse",
    }

    def pass_on(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        if action != GEMINI_GENERATE_CONTENT:
            return super().pass_on(action, payload, headers)
        return transport.ask(*self._own(action, payload, headers), configured=self.configured)

    def pass_on_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        if action != GEMINI_STREAM_GENERATE_CONTENT:
            return super().pass_on_stream(action, payload, headers)
        return transport.lines(*self._own(action, payload, headers), configured=self.configured)

    def usage(self, answer: Json) -> dict[str, int]:
        told: Any = answer.get("usageMetadata")
        if told is None:
            return super().usage(answer)
        return counted(
            told,
            "promptTokenCount",
            "candidatesTokenCount",
            "totalTokenCount",
            "cachedContentTokenCount",
        )

    def url(self, path: str) -> str:
        return below(self._base, f"openai/{path}")

    @property
    def _base(self) -> str:
        return self.model.auth_config.get("api_base") or _BASE

    def _own(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> tuple[str, dict[str, str], Json]:
        path = self.path(action).format(model=quote(self.model.name, safe=""))
        key = {"x-goog-api-key": self.model.secret.get("api_key", "")}
        base = self._base.rstrip("/")
        return f"{base}/{path}", foreign(headers, key), payload
