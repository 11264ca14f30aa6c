"""Reading templates."""

from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import NO_VALUE, Resolver, load
from local.http.routes import Router
from local.template import read
from local.template_definitions import TemplateError

FIXTURE = Path(__file__).parent / "fixtures/template.yaml"
PRODUCT = Path(__file__).parents[2] / "template.yaml"


def test_fixture() -> None:
    template = read(FIXTURE, "some-table-name", "eu-west-1")
    echo = template.functions["EchoFunction"]
    assert echo.environment == {"TABLE_NAME": "some-table-name", "GREETING": "hello"}
    assert (echo.handler, echo.timeout_seconds, echo.memory_mb) == (
        "fixture_echo.app.handler",
        2,
        1024,
    )
    assert echo.code == FIXTURE.parent / "functions"
    assert not echo.calls_models
    assert {route.key: route.function for route in template.routes} == {
        "GET /health": "EchoFunction",
        "ANY /items/{proxy+}": "ItemsFunction",
        "ANY /echo/{proxy+}": "EchoFunction",
    }
    (mapping,) = template.mappings
    assert mapping.function == "CopierFunction"
    assert (mapping.batch_size, mapping.maximum_retry_attempts) == (10, 2)
    assert mapping.bisect
    assert mapping.report_batch_item_failures
    assert "prefix" in mapping.patterns[0]
    assert template.table["PointInTimeRecoverySpecification"] == {}


def test_product() -> None:
    template = read(PRODUCT, "mlflow-serverless", "us-east-1")
    router = Router(template.routes)
    patient = [function for function in template.functions.values() if function.calls_models]
    assert [(function.name, function.timeout_seconds) for function in patient] == [
        ("GatewayCallsFunction", 900)
    ]
    for path in (
        "/health",
        "/version",
        "/api/2.0/mlflow/runs/create",
        "/ajax-api/2.0/mlflow/unknown",
    ):
        match = router.match("GET", path)
        assert match is not None
        assert match.function in template.functions
    assert [mapping.function for mapping in template.mappings] == [
        "IndexerFunction",
        "LanderFunction",
    ]
    assert len(template.table["GlobalSecondaryIndexes"]) == 5


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "P"}, "p"),
        ({"Ref": "List"}, ["a", "b"]),
        ({"Ref": "T"}, "table"),
        ({"Ref": "Other"}, "Other"),
        ({"Fn::Sub": "${P}-${AWS::Region}-${T}-${!Literal}"}, "p-r-table-${Literal}"),
        ({"Fn::Sub": ["${x}", {"x": {"Ref": "P"}}]}, "p"),
        ({"Fn::GetAtt": ["T", "StreamArn"]}, "arn:aws:local:r:StreamArn:table"),
        ({"Fn::If": ["Yes", 1, 2]}, 1),
        ({"Fn::If": ["No", 1, 2]}, 2),
        ({"Fn::Join": ["-", ["a", {"Ref": "P"}]]}, "a-p"),
        ({"Fn::Select": [1, {"Fn::Split": [",", "a,b"]}]}, "b"),
        ({"Fn::FindInMap": ["M", "a", "b"]}, 7),
        ([1, {"Ref": "AWS::NoValue"}], [1]),
        ({"a": {"Ref": "AWS::NoValue"}, "b": 1}, {"b": 1}),
        ({"Ref": "AWS::NoValue"}, NO_VALUE),
    ],
)
def test_intrinsic_functions(value: Any, expected: Any) -> None:
    document = {
        "Parameters": {
            "P": {"Type": "String", "Default": "p"},
            "List": {"Type": "CommaDelimitedList", "Default": "a, b"},
        },
        "Mappings": {"M": {"a": {"b": 7}}},
        "Conditions": {
            "Yes": {"Fn::Equals": [{"Ref": "P"}, "p"]},
            "No": {"Fn::And": [{"Condition": "Yes"}, {"Fn::Not": [{"Condition": "Yes"}]}]},
        },
        "Resources": {},
    }
    resolver = Resolver(document, physical={"T": "table"}, region="r")
    assert resolver.resolve(value) == expected


def test_unknown_function_is_named() -> None:
    with pytest.raises(TemplateError, match="Fn::Cidr"):
        Resolver({}).resolve({"Fn::Cidr": []})


@pytest.mark.parametrize("text", ["a: [", "- 1", "Resources: {}"])
def test_not_a_template(tmp_path: Any, text: Any) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(text)
    with pytest.raises(TemplateError):
        read(path, "t", "r")
    with pytest.raises(TemplateError):
        load(tmp_path / "absent.yaml")
