"""Translates embeddings of OpenAI's form to and from the models at Amazon Bedrock that embed texts:
Amazon's Titan and Cohere's Embed.

https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html and
https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-embed.html describe them.
"""

from __future__ import annotations

import base64
import random
import re
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mlcore.db import deadline
from mlcore.errors import GatewayCallFailed
from mlcore.providers import openai_answers, wait_meter
from mlcore.providers.openai import unexpected_answer
from mlcore.providers.token_counts import is_count

Json = dict[str, Any]

Invoke = Callable[[Json], tuple[Json, Mapping[str, int]]]
"""Sends a request to the model; returns its answer and the token counts in headers."""

MAX_TEXTS: Final = 2048
"""Maximum number of texts in a call, as with OpenAI."""
_COHERE_BATCH: Final = 96
_MAX_ANSWER_BYTES: Final = 5_900_000
"""Maximum size of an answer. Lambda's own limit is only a little higher."""
_BYTES_OF_NUMBER: Final = {"float": 21.0, "base64": 5.4}
"""Estimated bytes of one number of a vector in an answer, by ``encoding_format``."""
_COHERE_TYPES: Final = ("search_document", "search_query", "classification", "clustering")
_BYTES_OF_TOKEN: Final = 4
_PAUSES: Final = (0.5, 1.0)
"""The longest pause in seconds before each further attempt of a request."""
_MAX_PAUSE: Final = 3.0
_ANSWER_SECONDS: Final = 1.0
"""Seconds that must remain between the end of a pause and the deadline."""


class _Family(NamedTuple):
    """Models with the same form of requests and answers."""

    batch: int
    """The maximum number of texts in a request."""
    size: int
    """The number of dimensions of a vector, unless the request sets another one."""
    request: Callable[[Sequence[str], Json], Json]
    """Makes the model's request from texts and the fields of the embeddings request."""
    vectors: Callable[[Json], list[Any]]
    """Returns the vectors in the model's answer."""


def embed(model: str, payload: Json, invoke: Invoke, spend: Callable[[int], None]) -> Json:
    """Returns the embeddings of texts in OpenAI's form. A model accepts one text or up to 96 texts
    in a request, so more texts need several requests. They are sent one after the other in this
    thread, so that the call ends when its caller leaves, and counts as one in limits of concurrent
    calls.

    Args:
        spend: is called after each request with the tokens of all requests so far.

    Raises:
        GatewayCallFailed: the model embeds no texts (501), the request is malformed (400) or needs
            what the model does not have (422), or Bedrock refuses it.
    """
    family = _family_of(model)
    texts = _texts_of(payload)
    format_name = _format_of(payload)
    encoded = _base64 if format_name == "base64" else _numbers
    _check_size(texts, payload, family, format_name)
    vectors: list[Any] = []
    tokens = 0
    for start in range(0, len(texts), family.batch):
        part = texts[start : start + family.batch]
        request = family.request(part, payload)
        answer, counted = _repeated(invoke, request) if start else invoke(request)
        tokens += _tokens_in(answer, counted, part)
        spend(tokens)
        try:
            part_vectors = [encoded(vector) for vector in family.vectors(answer)]
        except (KeyError, TypeError, struct.error, OverflowError) as error:
            raise unexpected_answer(error) from None
        if len(part_vectors) != len(part):
            raise GatewayCallFailed(502, "The provider did not return a vector for each text.")
        vectors += part_vectors
    return openai_answers.embeddings(vectors, model, tokens, tokens)


def _repeated(invoke: Invoke, request: Json) -> tuple[Json, Mapping[str, int]]:
    """Sends one of the later requests of a call, and repeats it while Bedrock is busy. (If the
    error were raised, the whole call would be repeated from its first request.)"""
    for longest in _PAUSES:
        try:
            return invoke(request)
        except GatewayCallFailed as error:
            seconds = random.uniform(0.0, longest)  # noqa: S311 -- no secret
            seconds += error.retry_seconds or 0.0
            is_last = time.monotonic() + seconds + _ANSWER_SECONDS > deadline.current()
            if not error.traits.is_repeatable or seconds > _MAX_PAUSE or is_last:
                raise _final(error) from None
        with wait_meter.counted():
            time.sleep(seconds)
    try:
        return invoke(request)
    except GatewayCallFailed as error:
        raise _final(error) from None


def _final(error: GatewayCallFailed) -> GatewayCallFailed:
    """Marks the error so that the gateway does not repeat the whole call. Returns the error."""
    error.traits = error.traits._replace(is_repeatable=False, is_unsent=False)
    return error


def _family_of(model: str) -> _Family:
    """Returns the family of a model, by the model ID in its name. Raises GatewayCallFailed (501) if
    the name, such as an ARN, contains no ID of a supported model."""
    for pattern, family in _FAMILIES.items():
        if re.search(rf"(^|[./])({pattern})", model):
            return family
    raise GatewayCallFailed(
        501,
        "The embeddings route is implemented for these Amazon Bedrock models: Titan Text "
        "Embeddings, and Cohere Embed 3 and 4. The model's name must contain the ID of such a "
        "model.",
    )


def _texts_of(payload: Json) -> list[str]:
    """Returns the texts to embed. Raises GatewayCallFailed (400) if there are none or too many, if
    one is empty, or if the input is neither a text nor a list; (422) if an item is no text, such as
    a token."""
    given = payload.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not 0 < len(texts) <= MAX_TEXTS:
        raise GatewayCallFailed(400, f"'input' must be 1 to {MAX_TEXTS} texts.")
    if not all(isinstance(text, str) for text in texts):
        raise GatewayCallFailed(422, "Amazon Bedrock embeds texts, not tokens.")
    if not all(text.strip() for text in texts):
        raise GatewayCallFailed(400, "'input' must not contain an empty text.")
    return texts


def _check_size(texts: Sequence[str], payload: Json, family: _Family, format_name: str) -> None:
    """Checks, before anything is sent, that the answer will not be too large to be returned. Raises
    GatewayCallFailed (400) otherwise."""
    wanted = payload.get("dimensions")
    size = wanted if is_count(wanted) and wanted else family.size
    most = _MAX_ANSWER_BYTES // int(size * _BYTES_OF_NUMBER[format_name])
    if len(texts) > most:
        raise GatewayCallFailed(
            400,
            f"The answer would be too large: 'input' may be {most} texts for vectors of {size} "
            "numbers. 'encoding_format': 'base64' makes them smaller.",
        )


def _format_of(payload: Json) -> str:
    """Returns the requested format of a vector: ``float`` (a list of numbers) or ``base64`` (the
    Base64 of its little-endian 32-bit floats). Raises GatewayCallFailed (400) for another
    format."""
    name = payload.get("encoding_format") or "float"
    if not isinstance(name, str) or name not in _BYTES_OF_NUMBER:
        raise GatewayCallFailed(400, "'encoding_format' must be 'float' or 'base64'.")
    return name


def _tokens_in(answer: Json, counted: Mapping[str, int], texts: Sequence[str]) -> int:
    """Returns the number of tokens of a request: the count in the headers, else the count in the
    answer, else a quarter of the bytes of the texts."""
    for count in (counted.get("input_tokens"), answer.get("inputTextTokenCount")):
        if is_count(count):
            return count
    return sum(len(text.encode("utf-8", "replace")) for text in texts) // _BYTES_OF_TOKEN


def _numbers(vector: list[Any]) -> list[Any]:
    if not isinstance(vector, list) or not all(type(value) in (int, float) for value in vector):
        raise TypeError("a vector of numbers is expected")
    return vector


def _base64(vector: list[Any]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _titan_1(texts: Sequence[str], payload: Json) -> Json:
    _refuse(payload, "dimensions", "normalize")
    return {"inputText": texts[0]}


def _titan_2(texts: Sequence[str], payload: Json) -> Json:
    more = {name: payload[name] for name in ("normalize",) if name in payload}
    return {"inputText": texts[0], **_dimensions(payload, "dimensions"), **more}


def _titan_vectors(answer: Json) -> list[Any]:
    return [answer["embedding"]]


def _cohere_3(texts: Sequence[str], payload: Json) -> Json:
    _refuse(payload, "dimensions")
    return _cohere(texts, payload)


def _cohere_4(texts: Sequence[str], payload: Json) -> Json:
    return {**_cohere(texts, payload), **_dimensions(payload, "output_dimension")}


def _cohere(texts: Sequence[str], payload: Json) -> Json:
    kind = payload.get("input_type", _COHERE_TYPES[0])
    if kind not in _COHERE_TYPES:
        raise GatewayCallFailed(400, f"'input_type' must be one of {', '.join(_COHERE_TYPES)}.")
    more = {"truncate": payload["truncate"]} if "truncate" in payload else {}
    return {"texts": list(texts), "input_type": kind, **more}


def _cohere_vectors(answer: Json) -> list[Any]:
    vectors = answer["embeddings"]
    return list(vectors["float"] if isinstance(vectors, dict) else vectors)


def _dimensions(payload: Json, name: str) -> Json:
    wanted = payload.get("dimensions")
    if wanted is None:
        return {}
    if not is_count(wanted) or wanted < 1:
        raise GatewayCallFailed(400, "'dimensions' must be a positive whole number.")
    return {name: wanted}


def _refuse(payload: Json, *names: str) -> None:
    for name in names:
        if payload.get(name) is not None:
            raise GatewayCallFailed(422, f"The model does not have the parameter '{name}'.")


_FAMILIES: Final[Mapping[str, _Family]] = {
    r"amazon\.titan-embed-(text-v1|g1-text-02)": _Family(1, 1536, _titan_1, _titan_vectors),
    r"amazon\.titan-embed-text-v2": _Family(1, 1024, _titan_2, _titan_vectors),
    r"cohere\.embed-(english|multilingual)-v3": _Family(
        _COHERE_BATCH, 1024, _cohere_3, _cohere_vectors
    ),
    r"cohere\.embed-v4": _Family(_COHERE_BATCH, 1536, _cohere_4, _cohere_vectors),
}
