"""Requests forwarded to any path of a model provider, and their answers, which may be bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

_JSON: Final = "application/json"
_MEDIA: Final = ("audio/", "image/", "video/")


class ProxiedRequest(NamedTuple):
    """A request to a path of a model provider, as the caller sent it."""

    path: str
    """The path below the provider's root, percent-encoded, with the query."""
    method: str = "POST"
    body: Json | None = None
    """The JSON body; None if there is none, or if it is not JSON."""
    content: bytes | None = None
    """The body that is not JSON, for example a form with a file."""
    content_type: str = ""
    """The type that the caller names, with the boundary of a form. Some SDKs name one without a
    body."""
    endpoint: str = ""
    """The name of the endpoint that is called, which stands for its model in paths of Bedrock."""

    @property
    def named(self) -> Json:
        """The fields of the request's body; empty if it has none."""
        return self.body or {}

    def described(self) -> Json:
        """Returns what a call's trace records of the request as the inputs: the JSON body of a
        POST; for other requests the method, the path and the JSON body, or the content type and
        size of a body that is not JSON."""
        if self.method == "POST" and self.body is not None:
            return self.body
        description: Json = {"method": self.method, "path": self.path.partition("?")[0]}
        if self.body is not None:
            description["body"] = self.body
        if self.content is not None:
            description["body"] = {"content_type": self.content_type, "bytes": len(self.content)}
        return description

    def encoded(self) -> bytes | None:
        """Returns the body's bytes as sent to the model provider; None if there is no body."""
        return self.content if self.body is None else json.dumps(self.body).encode()

    def sent_type(self) -> str | None:
        """Returns the content type that is sent to the model provider; None if there is none."""
        return (self.content_type or None) if self.body is None else _JSON


class RawAnswer(NamedTuple):
    """A provider's answer that is neither a JSON object nor a stream of events."""

    status: int
    content: bytes
    content_type: str

    @property
    def is_media(self) -> bool:
        """Whether the answer is sound, a picture or a film, whose bytes are no text."""
        return self.content_type.startswith(_MEDIA)

    def described(self) -> Json:
        """Returns what a call's trace records of the answer as the outputs: content type and
        size."""
        return {"content_type": self.content_type, "bytes": len(self.content)}


class CountedAnswer(NamedTuple):
    """A model provider's JSON answer whose token counts are in its HTTP headers."""

    body: Json
    headers: Mapping[str, str]
    """The headers with token counts, names in lower case."""
    usage: dict[str, int]
    """The token counts by MLflow's names."""


class BinaryEvent(NamedTuple):
    """A message of a streamed answer in AWS's binary format ``vnd.amazon.eventstream``."""

    content: bytes
    """The message as it is sent on."""
    kind: str
    data: Json
    """The event; for a chunk of a model's own stream, the model's event inside the chunk."""
