"""What the functions find in their environment."""

from pathlib import Path
from typing import Any

from local.definitions import FunctionDefinition
from local.environment import answer_to_own_names, prepare, region, table_name
from mlcore.http.security import Security


def function(name: str, **variables: str) -> FunctionDefinition:
    return FunctionDefinition(name, "a.b", Path(), 3.0, 128, variables)


def prepared(own: bool, *functions: FunctionDefinition, **environ: str) -> dict[str, str]:
    prepare(functions, "http://engine", own_engine=own, environ=environ)
    return environ


def test_our_engine_never_sees_real_credentials() -> None:
    got = prepared(
        True,
        AWS_ACCESS_KEY_ID="real",
        AWS_SECRET_ACCESS_KEY="real",
        AWS_SESSION_TOKEN="real",
        AWS_PROFILE="real",
        AWS_ENDPOINT_URL_DYNAMODB_STREAMS="http://elsewhere",
    )
    assert "real" not in got.values()
    assert got["AWS_ENDPOINT_URL_DYNAMODB"] == "http://engine"
    assert got["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"] == "http://engine"


def test_the_users_engine_gets_the_users_credentials() -> None:
    assert prepared(False, AWS_ACCESS_KEY_ID="mine")["AWS_ACCESS_KEY_ID"] == "mine"
    assert "AWS_ACCESS_KEY_ID" not in prepared(False, AWS_PROFILE="mine")
    assert prepared(False)["AWS_ACCESS_KEY_ID"] == "AKIAIOSFODNN7EXAMPLE"


def test_precedence_is_user_then_runner_then_template(capsys: Any) -> None:
    got = prepared(
        True,
        function("One", TABLE_NAME="x", A="1", B="1", POWERTOOLS_LOG_LEVEL="DEBUG", AWS_X="1"),
        function("Two", A="2", POWERTOOLS_SERVICE_NAME="two"),
        B="user",
    )
    assert (got["A"], got["B"], got["TABLE_NAME"]) == ("1", "user", "mlflow-serverless")
    assert (got["POWERTOOLS_LOG_LEVEL"], got["POWERTOOLS_SERVICE_NAME"]) == ("WARNING", "local")
    assert "AWS_X" not in got
    assert "Two: A='2' is ignored" in capsys.readouterr().err


def test_who_listens_on_this_machine_alone_answers_to_its_names() -> None:
    own: dict[str, str] = {}
    open_to_all: dict[str, str] = {}
    chosen = {"MLFLOW_SERVER_ALLOWED_HOSTS": "mine"}
    answer_to_own_names("127.0.0.1", own)
    answer_to_own_names("0.0.0.0", open_to_all)
    answer_to_own_names("127.0.0.1", chosen)
    security = Security(own)
    for host in (
        "localhost",
        "localhost:5000",
        "127.0.0.1:1",
        "0.0.0.0:5000",
        "[::1]",
        "[::1]:5000",
    ):
        assert security.answer("GET", "/api/x", {"host": host}) is None
    for host in ("evil.com", "evil.com:5000", "127.0.0.1.evil.com", ""):
        refused = security.answer("GET", "/api/x", {"host": host})
        assert refused is not None
        assert refused.status == 403
    assert (open_to_all, chosen) == ({}, {"MLFLOW_SERVER_ALLOWED_HOSTS": "mine"})


def test_names() -> None:
    assert table_name({}) == "mlflow-serverless"
    assert table_name({"TABLE_NAME": "t"}) == "t"
    assert region({}) == "us-east-1"
    assert region({"AWS_DEFAULT_REGION": "a", "AWS_REGION": "b"}) == "b"
