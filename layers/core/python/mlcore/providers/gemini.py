"""Gemini: chats and embeddings by Google's OpenAI-compatible API, and passthrough of its native
API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote, unquote

from mlcore.providers import cache_markers, transport
from mlcore.providers.openai import Compatible, join_path, proxied_url
from mlcore.providers.provider import (
    GEMINI_GENERATE_CONTENT,
    GEMINI_STREAM_GENERATE_CONTENT,
    Json,
    forwarded_headers,
)
from mlcore.providers.proxied import ProxiedRequest, RawAnswer
from mlcore.providers.token_counts import is_count, token_counts

_KEYS_IN_QUERIES: Final = ("key", "access_token")
"""Parameters in which Google's servers read credentials, also with ``$`` before the name;
https://cloud.google.com/apis/docs/system-parameters."""
_BASE: Final = "https://generativelanguage.googleapis.com/v1beta"


class Gemini(Compatible):
    display_name = "Gemini"
    passthrough_paths: ClassVar[Mapping[str, str]] = {
        **Compatible.passthrough_paths,
        GEMINI_GENERATE_CONTENT: "models/{model}:generateContent",
        GEMINI_STREAM_GENERATE_CONTENT: "models/{model}:streamGenerateContent?alt=sse",
    }

    def passthrough(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        if action != GEMINI_GENERATE_CONTENT:
            return super().passthrough(action, payload, headers)
        return transport.ask(
            *self._native_request(action, payload, headers),
            configured=self.configured,
            redactor=self.credential_redactor,
        )

    def passthrough_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        if action != GEMINI_STREAM_GENERATE_CONTENT:
            return super().passthrough_stream(action, payload, headers)
        return transport.lines(
            *self._native_request(action, payload, headers),
            configured=self.configured,
            redactor=self.credential_redactor,
        )

    def proxy(
        self, request: ProxiedRequest, headers: Mapping[str, str]
    ) -> Iterator[Json | bytes | RawAnswer]:
        key = {"x-goog-api-key": self.model.secret.get("api_key", "")}
        return transport.proxied(
            proxied_url(self._base, _without_keys(request.path)),
            forwarded_headers(headers, key),
            request,
            configured=True,
            redactor=self.credential_redactor,
        )

    def usage(self, answer: Json) -> dict[str, int]:
        metadata: Any = answer.get("usageMetadata")
        if metadata is None:
            return _with_thoughts(super().usage(answer))
        counts = token_counts(
            metadata,
            "promptTokenCount",
            "candidatesTokenCount",
            "totalTokenCount",
            "cachedContentTokenCount",
        )
        thoughts = metadata.get("thoughtsTokenCount") if isinstance(metadata, dict) else None
        if is_count(thoughts):
            # Gemini counts them apart from the candidates, and charges them as output.
            counts["output_tokens"] = counts.get("output_tokens", 0) + thoughts
        return counts

    def chat_usage(self, answer: Json) -> dict[str, int]:
        return _with_thoughts(super().chat_usage(answer))

    def accepted(self, chat: Json) -> Json:
        return cache_markers.without_markers(chat)

    def url(self, path: str) -> str:
        return join_path(self._base, f"openai/{path}")

    @property
    def _base(self) -> str:
        return self.model.auth_config.get("api_base") or _BASE

    def _native_request(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> tuple[str, dict[str, str], Json]:
        path = self.path(action).format(model=quote(self.model.name, safe=""))
        key = {"x-goog-api-key": self.model.secret.get("api_key", "")}
        base = self._base.rstrip("/")
        return f"{base}/{path}", forwarded_headers(headers, key), payload


def _without_keys(path: str) -> str:
    """Returns a path without the credentials in its query: the endpoint's are in a header, and
    Google's servers would have to choose."""
    plain, _, query = path.partition("?")
    kept = [
        parameter
        for parameter in query.split("&")
        if unquote(parameter.partition("=")[0]).strip().lower().lstrip("$") not in _KEYS_IN_QUERIES
    ]
    return f"{plain}?{'&'.join(kept)}" if query and kept else plain


def _with_thoughts(counts: dict[str, int]) -> dict[str, int]:
    """Returns token counts with thinking tokens as part of the output, since Google charges them as
    output. The OpenAI-compatible API includes them only in the total."""
    charged = counts.get("total_tokens", 0) - counts.get("input_tokens", 0)
    if charged > counts.get("output_tokens", 0):
        return {**counts, "output_tokens": charged}
    return counts
