"""Answers are compressed where the bytes go over a network, and say the same."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from mlcore import errors
from mlcore.http import PlainRoute, Response, get, lambda_handler, nothing
from mlcore.http.compression import MAX_BODY_BYTES, fit
from mlcore.wire import Message

LAMBDA = "AWS_LAMBDA_RUNTIME_API"
GZIP = {"accept-encoding": "gzip, deflate, br"}
LONG = json.dumps({"runs": [{"run_id": f"{n:032}"} for n in range(200)]})


@pytest.fixture
def in_lambda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LAMBDA, "127.0.0.1:9001")


@pytest.mark.usefixtures("in_lambda")
def test_a_long_answer_is_compressed_and_says_the_same() -> None:
    fitted = fit(Response(200, LONG), GZIP)
    assert isinstance(fitted.body, bytes)
    assert gzip.decompress(fitted.body).decode() == LONG
    assert len(fitted.body) < len(LONG) / 4
    assert fitted.headers["content-encoding"] == "gzip"
    assert set(fitted.headers["vary"].split(", ")) == {"Origin", "Accept-Encoding"}


@pytest.mark.usefixtures("in_lambda")
@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (LONG, {}),
        (LONG, {"accept-encoding": "br"}),
        ("short", GZIP),
        (LONG.encode(), GZIP),  # a file
    ],
)
def test_what_stays_as_it_is(body: str | bytes, headers: dict[str, str]) -> None:
    response = Response(200, body)
    assert fit(response, headers) == response


def test_on_a_laptop_nothing_that_fits_is_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LAMBDA, raising=False)
    assert fit(Response(200, LONG), GZIP).body == LONG
    packed = fit(Response(200, "a" * (MAX_BODY_BYTES + 1)), GZIP)
    assert isinstance(packed.body, bytes)
    with pytest.raises(errors.BadRequest, match="6 MB"):
        fit(Response(200, "a" * (MAX_BODY_BYTES + 1)), {})


@pytest.mark.usefixtures("in_lambda")
def test_api_gateway_gets_what_it_can_decode() -> None:
    handler = lambda_handler(
        (get("/runs/all", Message, lambda *_: json.loads(LONG), "shared_rules.anybody"),),
        (PlainRoute("GET", "/x", nothing, lambda *_: Response(200, "OK"), "shared_rules.public"),),
    )

    def ask(headers: dict[str, str]) -> Any:
        event = {"requestContext": {"http": {"method": "GET"}}, "headers": headers}
        return handler({**event, "rawPath": "/api/2.0/runs/all"}, None)

    plain, packed = ask({}), ask(GZIP)
    assert (plain["isBase64Encoded"], packed["isBase64Encoded"]) == (False, True)
    assert packed["headers"]["content-encoding"] == "gzip"
    assert gzip.decompress(base64.b64decode(packed["body"])).decode() == plain["body"]


@pytest.mark.parametrize("text", ["\t", "\n", "\x01", '"', "é"])
def test_no_text_exceeds_lambdas_limit(text: str) -> None:
    body = text * (4_000_000 // len(text.encode()))
    try:
        answer = fit(Response(200, body, "text/csv"), {})
    except errors.BadRequest:
        answer = Response(400, "")
    assert len(json.dumps(answer.body, ensure_ascii=False).encode()) <= MAX_BODY_BYTES
