"""Embeddings of models at Amazon Bedrock in OpenAI's form: what the models are asked, what comes
back, and what it costs."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.errors import GatewayCallFailed
from mlcore.providers import bedrock_embeddings
from tests.contract.bedrock_world import SECRET_KEY, TOKEN, bedrock_here, ready
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import budget
from tests.doubles.bedrock import signer_of
from tests.doubles.bedrock_models import answer, counted, refusal, vector
from tests.doubles.providers import Asked, Provider, Told

Json = dict[str, Any]

TITAN_1, TITAN_2 = "amazon.titan-embed-text-v1", "amazon.titan-embed-text-v2:0"
COHERE_3, COHERE_4 = "cohere.embed-english-v3", "us.cohere.embed-v4:0"
ARN = "arn:aws:bedrock:eu-west-3::foundation-model/amazon.titan-embed-text-v2:0"
PROFILE = "arn:aws:bedrock:eu-west-3:123456789012:application-inference-profile/a1b2c3"
BATCHES = {TITAN_1: 1, TITAN_2: 1, ARN: 1, COHERE_3: 96, COHERE_4: 96}
SIZES = {TITAN_1: 1536, TITAN_2: 1024, ARN: 1024, COHERE_3: 1024, COHERE_4: 1536}


@pytest.fixture
def bedrock(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    with bedrock_here(monkeypatch, tmp_path) as provider:
        yield provider


def embed(body: Json) -> tuple[int, Json]:
    status, _, text = post("mlflow/v1/embeddings", {"model": "e", **body})
    return status, json.loads(text)


@pytest.mark.parametrize("name", BATCHES)
def test_texts(bedrock: Provider, name: str) -> None:
    """In their order, in as many requests as the model needs, each signed; the tokens add up."""
    ready("e", name)
    texts = [f"text number {number}" for number in range(98)]
    for asked in (texts, texts[0]):
        bedrock.asked.clear()
        status, told = embed({"input": asked})
        expected = texts if asked is texts else texts[:1]
        assert (status, told["object"], told["model"]) == (200, "list", name)
        assert [item["index"] for item in told["data"]] == list(range(len(expected)))
        vectors = [item["embedding"] for item in told["data"]]
        assert vectors == [vector(text, SIZES[name]) for text in expected]
        tokens = 3 * len(expected)
        assert told["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
        assert len(bedrock.asked) == -(-len(expected) // BATCHES[name])
        for request in bedrock.asked:
            assert request.path.endswith("/invoke")
            assert signer_of(request, SECRET_KEY, TOKEN) == ("ASIAROLE", "eu-west-3")


@pytest.mark.parametrize(("name", "size"), [(TITAN_2, 256), (COHERE_4, 512)])
def test_dimensions_and_base64(bedrock: Provider, name: str, size: int) -> None:
    """As OpenAI's SDK asks for them, unless it is told otherwise."""
    ready("e", name)
    status, told = embed({"input": ["a", "b"], "dimensions": size, "encoding_format": "base64"})
    assert status == 200
    for item, text in zip(told["data"], "ab", strict=True):
        packed = base64.b64decode(item["embedding"])
        assert list(struct.unpack(f"<{size}f", packed)) == vector(text, size)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(("", "float", "base64", "x")),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("a"), inner),
        max_leaves=3,
    )
)
def test_any_format(value: Any) -> None:
    """Nothing stands for OpenAI's default; what is no format is refused."""

    def invoke(_: Json) -> tuple[Json, dict[str, int]]:
        return {"embedding": [1.0, 2.0]}, {}

    body = {"input": "a", "encoding_format": value}
    if value and value not in ("float", "base64"):
        with pytest.raises(GatewayCallFailed) as refused:
            bedrock_embeddings.embed(TITAN_2, body, invoke, lambda _: None)
        assert refused.value.status == 400
    else:
        answer = bedrock_embeddings.embed(TITAN_2, body, invoke, lambda _: None)
        kind = str if value == "base64" else list
        assert type(answer["data"][0]["embedding"]) is kind


def test_what_a_model_takes_besides(bedrock: Provider) -> None:
    ready("e", TITAN_2)
    assert embed({"input": "a", "normalize": False, "user": "u"})[0] == 200
    assert bedrock.asked[-1].body == {"inputText": "a", "normalize": False}
    ready("c", COHERE_3)
    body = {"model": "c", "input": "a", "input_type": "search_query", "truncate": "END"}
    assert post("mlflow/v1/embeddings", body)[0] == 200
    assert bedrock.asked[-1].body == {
        "texts": ["a"],
        "input_type": "search_query",
        "truncate": "END",
    }


def test_types_of_vectors_of_cohere(bedrock: Provider) -> None:
    """An answer may hold the vectors by their type."""
    ready("e", COHERE_4)
    bedrock.answer = lambda _: counted({"embeddings": {"float": [[1.0, 2.0]]}}, 5)
    status, told = embed({"input": "a"})
    assert (status, told["data"][0]["embedding"]) == (200, [1.0, 2.0])


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        (TITAN_2, {"input": []}, 400),
        (TITAN_2, {"input": ["a", " "]}, 400),
        (TITAN_2, {"input": ""}, 400),
        (TITAN_2, {"input": ["a"] * 2049}, 400),
        (TITAN_2, {"input": ["a"] * 400}, 400),
        (TITAN_1, {"input": ["a"] * 800, "encoding_format": "base64"}, 400),
        (TITAN_2, {"input": [1, 2]}, 422),
        (TITAN_2, {"input": [[1, 2]]}, 422),
        (TITAN_2, {"input": "a", "encoding_format": "int8"}, 400),
        (TITAN_2, {"input": "a", "dimensions": "512"}, 400),
        (TITAN_2, {"input": "a", "dimensions": True}, 400),
        (TITAN_2, {"input": "a", "dimensions": -1}, 400),
        (TITAN_1, {"input": "a", "dimensions": 512}, 422),
        (COHERE_3, {"input": "a", "dimensions": 512}, 422),
        (COHERE_4, {"input": "a", "input_type": "image"}, 400),
        (COHERE_4, {"input": "a", "input_type": ["search_query"]}, 400),
        (PROFILE, {"input": "a"}, 501),
        ("amazon.titan-embed-image-v1", {"input": "a"}, 501),
    ],
)
def test_what_is_refused_before_bedrock_is_asked(
    bedrock: Provider, name: str, body: Json, status: int
) -> None:
    ready("e", name)
    assert embed(body)[0] == status
    assert bedrock.asked == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"embedding": "x"},
        {"embedding": [1.0, "x"]},
        {"embedding": None, "inputTextTokenCount": -1},
    ],
)
def test_an_answer_of_another_form(bedrock: Provider, body: Json) -> None:
    ready("e", TITAN_2)
    bedrock.answer = lambda _: Told(body=body)
    for form in ("base64", "float"):
        assert embed({"input": "a", "encoding_format": form})[0] == 502


def test_a_busy_model_is_asked_again_for_the_rest(bedrock: Provider) -> None:
    """Not for the texts that it has embedded."""
    ready("e", TITAN_2)
    refusals = iter([False, False, True, False, False])
    busy = refusal(429, "ThrottlingException", "Too many requests")
    bedrock.answer = lambda request: busy if next(refusals) else answer(request)
    status, told = embed({"input": ["a", "b", "c", "d"]})
    assert (status, len(told["data"])) == (200, 4)
    assert [request.body["inputText"] for request in bedrock.asked] == ["a", "b", "c", "c", "d"]


def test_a_call_that_fails_late_costs_what_it_has_used(bedrock: Provider) -> None:
    """Or texts could be embedded past every budget: a list whose last text is too long."""
    ready("e", TITAN_2)
    budget("GLOBAL", 1e-8)  # less than the price of one token
    texts = ["some words", "some more words", "too long"]
    status, told = embed({"input": texts})
    assert (status, told["detail"]) == (400, {"message": "Too many input tokens"})
    assert len(bedrock.asked) == 3
    assert embed({"input": "a"})[0] == 429
    assert len(bedrock.asked) == 3


def test_a_model_that_stays_busy(bedrock: Provider) -> None:
    """The call is given up after three attempts of one request, and is not begun anew."""
    ready("e", TITAN_2)

    def busy(request: Asked) -> Told:
        if request.body["inputText"] == "b":
            return refusal(429, "ThrottlingException", "Too many requests")
        return answer(request)

    bedrock.answer = busy
    assert embed({"input": ["a", "b", "c"]})[0] == 429
    assert [request.body["inputText"] for request in bedrock.asked] == ["a", "b", "b", "b"]
