"""Objects in S3 that a request to Bedrock names: refused wherever Bedrock would read them with the
server's credentials, and nowhere else. The places in Converse are those of botocore's model."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.model import ListShape, Shape, StructureShape

from mlcore.errors import GatewayCallFailed
from mlcore.providers.bedrock_operations import check_invoked, operation_of
from mlcore.providers.proxied import ProxiedRequest

Json = dict[str, Any]

OBJECT = "s3://bucket/key"
MODEL = "amazon.nova-pro-v1:0"


def places(shape: Shape, outer: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The ways from an input of an operation to a location in S3; ``*`` is an item of a list."""
    if outer.count("toolResult") > 1 or len(outer) > 14:
        return
    if shape.name == "S3Location":
        yield outer
    elif isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            yield from places(member, (*outer, name))
    elif isinstance(shape, ListShape):
        yield from places(shape.member, (*outer, "*"))


def _of_bedrock() -> tuple[tuple[str, ...], ...]:
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    found = {
        place
        for operation in ("Converse", "ConverseStream", "CountTokens")
        for shape in (model.operation_model(operation).input_shape,)
        if shape is not None
        for place in places(shape)
    }
    return tuple(sorted(found))


OF_CONVERSE = _of_bedrock()
OF_MODELS = (
    # https://docs.aws.amazon.com/nova/latest/userguide/complete-request-schema.html
    *(
        ("messages", "*", "content", "*", kind, "source", "s3Location")
        for kind in ("image", "video", "document", "audio")
    ),
    # https://docs.aws.amazon.com/nova/latest/userguide/embeddings-schema.html
    *(
        (f"{kind}EmbeddingParams", medium, "source", "s3Location")
        for kind in ("single", "segmented")
        for medium in ("text", "image", "audio", "video")
    ),
    # https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-pegasus.html
    ("mediaSource", "s3Location"),
    # https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-marengo-3.html
    *((medium, "mediaSource", "s3Location") for medium in ("image", "audio", "video")),
    ("text_image", "mediaSource", "s3Location"),
)
"""Places in the bodies of InvokeModel."""


def body_with(place: tuple[str, ...], value: Any) -> Json:
    for name in reversed(place):
        value = [value] if name == "*" else {name: value}
    made: Json = value
    return made


def check(operation: str, body: Json) -> None:
    request = ProxiedRequest(f"model/{MODEL}/{operation}", body=body)
    operation_of(request, {}, MODEL)


def refused(operation: str, body: Json) -> bool:
    try:
        check(operation, body)
    except GatewayCallFailed as failure:
        return (failure.status, "S3" in failure.message) == (403, True)
    return False


def test_what_converse_reads() -> None:
    """Files of messages, of results of tools, and in requests whose tokens are counted."""
    ends = {place[-3] for place in OF_CONVERSE}
    assert {"image", "video", "document", "audio"} <= ends, ends
    assert any(place[0] == "input" for place in OF_CONVERSE)
    assert any("toolResult" in place for place in OF_CONVERSE)


@pytest.mark.parametrize("place", [*OF_CONVERSE, *OF_MODELS], ids=".".join)
def test_what_bedrock_would_read(place: tuple[str, ...]) -> None:
    """In each spelling, alone and among other members, in lists, and in a body to count."""
    locations: tuple[Any, ...] = (
        {"uri": OBJECT},
        {"URI": " S3://bucket/key", "bucketOwner": "1"},
        {"type": "object", "description": "text", "uri": OBJECT},
        {"description": {"uri": OBJECT}},
        {"properties": {"uri": OBJECT}},
        {"s3_uri": [OBJECT]},
        [{"uri": OBJECT}],
        {"Uri ": OBJECT},
        OBJECT,
    )
    for location in locations:
        for name in ("s3Location", "S3LOCATION", "s3_location", "s3-location", "s3Uri"):
            body = body_with((*place[:-1], name), location)
            assert refused("converse", body), (name, location)
            assert refused("invoke", body)
            counted = base64.b64encode(json.dumps(body).encode()).decode()
            assert refused("count-tokens", {"input": {"invokeModel": {"body": counted}}})
            with pytest.raises(GatewayCallFailed):
                check_invoked(body)
    deep = body_with(("a",) * 150 + place, {"uri": OBJECT})
    assert refused("converse", deep)
    last = body_with(place, {"uri": OBJECT})
    text = json.dumps(last).replace(json.dumps(OBJECT), f'"x", "uri": {json.dumps(OBJECT)}')
    assert refused("converse", json.loads(text)), "a repeated name means the last one"


SCHEMA: Json = {
    "type": "object",
    "description": f"Such as {OBJECT}",
    "properties": {
        "s3Location": {
            "type": "object",
            "description": OBJECT,
            "properties": {"uri": {"type": "string", "description": OBJECT, "default": OBJECT}},
            "examples": [OBJECT],
        },
        "s3_uri": {"type": "string", "description": OBJECT, "examples": [OBJECT], "enum": [OBJECT]},
        "uri": {"type": "string", "pattern": "s3://.*", "const": OBJECT},
    },
    "required": ["s3Location", "uri"],
}
WITH_EXAMPLES: Json = {
    **SCHEMA,
    "examples": [{"s3Location": {"uri": OBJECT}, "s3_uri": OBJECT}],
    "default": {"uri": OBJECT},
}


@pytest.mark.parametrize(
    "body",
    [
        {"toolConfig": {"tools": [{"toolSpec": {"inputSchema": {"json": WITH_EXAMPLES}}}]}},
        {"toolConfig": {"tools": [{"toolSpec": {"name": "t", "description": OBJECT}}]}},
        {"tools": [{"name": "t", "description": OBJECT, "input_schema": WITH_EXAMPLES}]},
        {"tools": [{"type": "function", "function": {"parameters": WITH_EXAMPLES}}]},
        {"functions": [{"name": "t", "parameters": WITH_EXAMPLES}]},
        {"additionalModelRequestFields": {"tools": [{"input_schema": WITH_EXAMPLES}]}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": WITH_EXAMPLES}}},
        {"response_format": {"type": "json_object", "schema": WITH_EXAMPLES}},
        {"output_format": {"type": "json_schema", "schema": WITH_EXAMPLES}},
        {"output_config": {"format": {"type": "json_schema", "schema": WITH_EXAMPLES}}},
        {"additionalModelRequestFields": {"any": SCHEMA}},
        {"requestMetadata": {"uri": OBJECT, "s3Uri": OBJECT}},
        {"messages": [{"role": "user", "content": [{"text": OBJECT}]}], "system": OBJECT},
        {"messages": [{"content": [{"searchResult": {"source": OBJECT, "title": OBJECT}}]}]},
        {"messages": [{"content": [{"toolUse": {"input": {"s3Location": {"uri": OBJECT}}}}]}]},
    ],
)
def test_what_is_only_mentioned(body: Json) -> None:
    for operation in ("converse", "converse-stream", "invoke"):
        check(operation, body)
    check_invoked(body)


@pytest.mark.parametrize(
    "body",
    [
        {"tools": [{"toolSpec": {"source": {"s3Location": {"uri": OBJECT}}}}]},
        {"tools": {"input_schema": {"s3Location": {"uri": OBJECT}}}},
        {"response_format": {"source": {"s3Location": {"uri": OBJECT}}}},
        {"response_format": [{"schema": {"s3Location": {"uri": OBJECT}}}]},
        {"messages": [{"content": [{"image": {"format": {"source": {"uri": OBJECT}}}}]}]},
        {"a": {"requestMetadata": {"s3Uri": OBJECT}}},
        {"RequestMetadata": {"s3Uri": OBJECT}},
        {"schema": {"s3Location": {"uri": OBJECT}}},
        {"messages": [{"content": [{"schema": {"s3Location": {"uri": OBJECT}}}]}]},
    ],
)
def test_places_that_only_resemble_a_schema(body: Json) -> None:
    assert refused("converse", body)
    assert refused("invoke", body)
