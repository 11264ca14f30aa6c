"""What the functions find in their environment."""

import socket
from pathlib import Path
from typing import Any

from local.environment import (
    answer_to_own_names,
    prepare,
    reach_this_machine_directly,
    region,
    table_name,
)
from local.template_definitions import FunctionDefinition
from mlcore.http.security import Security


def function(name: str, **variables: str) -> FunctionDefinition:
    return FunctionDefinition(name, "a.b", Path(), 3.0, 128, variables)


def prepared(own: bool, *functions: FunctionDefinition, **environ: str) -> dict[str, str]:
    prepare(functions, "scheme://table", own_store=own, environ=environ)
    return environ


def test_beside_our_store_nothing_sees_real_credentials() -> None:
    got = prepared(
        True,
        AWS_ACCESS_KEY_ID="real",
        AWS_SECRET_ACCESS_KEY="real",
        AWS_SESSION_TOKEN="real",
        AWS_PROFILE="real",
    )
    assert "real" not in got.values()
    assert got["AWS_ENDPOINT_URL_DYNAMODB"] == "scheme://table"


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


def answers(allowed: dict[str, str], host: str) -> bool:
    refused = Security(allowed).answer("GET", "/api/x", {"host": host})
    assert refused is None or refused.status == 403
    return refused is None


OWN_NAMES = ("localhost", "localhost:5000", "127.0.0.1:1", "0.0.0.0:5000", "[::1]", "[::1]:5000")
FOREIGN_NAMES = ("evil.com", "evil.com:5000", "127.0.0.1.evil.com", "10.evil.com", "8.8.8.8", "")
PRIVATE_NAMES = ("10.1.2.3:5000", "192.168.0.7", "172.31.0.1:1", "[fd00::1]:5000")


def test_who_listens_on_this_machine_alone_answers_to_its_names() -> None:
    own: dict[str, str] = {}
    answer_to_own_names("127.0.0.1", own)
    assert all(answers(own, host) for host in OWN_NAMES)
    assert not any(answers(own, host) for host in (*FOREIGN_NAMES, *PRIVATE_NAMES))
    chosen = {"MLFLOW_SERVER_ALLOWED_HOSTS": "mine"}
    answer_to_own_names("0.0.0.0", chosen)
    assert chosen == {"MLFLOW_SERVER_ALLOWED_HOSTS": "mine"}


def test_who_listens_for_others_answers_to_what_they_may_call_it() -> None:
    """As MLflow's server does; it also takes 10.evil.com, which anybody may point here."""
    name = socket.gethostname()
    for listened in ("0.0.0.0", "::", "10.1.2.3"):
        allowed: dict[str, str] = {}
        answer_to_own_names(listened, allowed)
        for host in (*OWN_NAMES, *PRIVATE_NAMES, name, f"{name}:5000"):
            assert answers(allowed, host), host
        for host in FOREIGN_NAMES:
            assert not answers(allowed, host), host
    for listened, host in (("8.8.8.8", "8.8.8.8:5000"), ("2001:db8::1", "[2001:db8::1]:5000")):
        allowed = {}
        answer_to_own_names(listened, allowed)
        assert answers(allowed, host)
        assert not answers(allowed, "evil.com")


def test_a_proxy_is_not_asked_for_this_machine() -> None:
    assert not reach_this_machine_directly(environ := {})
    assert environ == {}
    environ = {"HTTP_PROXY": "http://proxy", "NO_PROXY": "intern.example.com"}
    assert reach_this_machine_directly(environ)
    assert environ["no_proxy"] == environ["NO_PROXY"] == "intern.example.com,127.0.0.1,localhost"
    assert not reach_this_machine_directly(environ)
    assert not reach_this_machine_directly({"all_proxy": "http://proxy", "no_proxy": "*"})


def test_names() -> None:
    assert table_name({}) == "mlflow-serverless"
    assert table_name({"TABLE_NAME": "t"}) == "t"
    assert region({}) == "us-east-1"
    assert region({"AWS_DEFAULT_REGION": "a", "AWS_REGION": "b"}) == "b"
