"""The function that runs code scorers in AWS, and what the judge runner makes of its answers."""

from __future__ import annotations

import io
import json
import os
import platform
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

import code_scorers.app
from judge_runner import code_scoring
from mlcore import errors
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.prices import aws
from mlcore.scorer_cage import cage, remote_cage
from mlcore.scorer_cage.cage import CageUnavailable, Judgement

Json = dict[str, Any]
FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:code-scorers:live"
SCORER = CodeScorer("quality", "return outputs == 'a'", "(outputs)", "quality", 0, (), False, "d")
CALL = {"inputs": "q", "outputs": "a", "expectations": None}


class Lambda:
    """Lambda's client; it calls the function's handler, or what a test puts in its place."""

    def __init__(self, handler: Callable[[Json], Any]) -> None:
        self._handler = handler
        self.payloads: list[bytes] = []
        self.failed = False

    def invoke(self, FunctionName: str, Payload: bytes) -> Json:  # noqa: N803 -- botocore's names
        assert FunctionName == FUNCTION
        self.payloads.append(Payload)
        answer = self._handler(json.loads(Payload))
        text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        failed = {"FunctionError": "Unhandled"} if self.failed else {}
        return {"Payload": io.BytesIO(text), **failed}


@pytest.fixture
def in_aws(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Json], Any]], Lambda]:
    """Makes the judge runner a Lambda function, beside the function of code scorers."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "judge-runner")
    monkeypatch.setenv(remote_cage.FUNCTION, FUNCTION)
    monkeypatch.setattr(code_scorers.app, "set_dumpable", lambda _dumpable: None)
    for name in code_scorers.app._CREDENTIALS:
        # The function removes them from the environment that it shares with the tests.
        monkeypatch.setenv(name, os.environ.get(name, ""))

    def serve(handler: Callable[[Json], Any]) -> Lambda:
        client = Lambda(handler)
        monkeypatch.setattr(remote_cage, "_client", lambda _seconds: client)
        return client

    return serve


def _invoked(event: Json) -> Json:
    return code_scorers.app.handler(event, None)


def test_the_function_gives_what_a_cage_of_this_machine_gives(in_aws: Any) -> None:
    here = cage.judge(SCORER.in_the_cage(), CALL, cage.CageLimits())
    client = in_aws(_invoked)
    there = code_scoring._run(SCORER, CALL, 30)
    assert there.feedback == here.feedback != ()
    assert (there.failure, here.failure) == (None, None)
    assert there.cpu_ms > 0
    assert json.loads(client.payloads[0])["seconds"] == 30


def test_the_function_lets_scorers_import_the_packages_of_its_layer(
    in_aws: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "shapes.py").write_text("AREA = 42")
    scorer = SCORER._replace(call_source="import shapes\nreturn shapes.AREA")
    in_aws(_invoked)
    monkeypatch.setattr(cage, "_LAMBDA_PATHS", (str(tmp_path / "missing"), str(tmp_path)))
    (refused,) = code_scoring._run(scorer, CALL, 30).feedback
    assert "cannot import 'shapes'" in str(refused.error)
    monkeypatch.setenv(cage.PACKAGES, "numpy, shapes")
    (feedback,) = code_scoring._run(scorer, CALL, 30).feedback
    assert feedback.value == 42


@pytest.mark.parametrize(
    ("function", "scorer"), [(256, 128), (512, 256), (1024, 768), (10240, 768), (None, 768)]
)
def test_a_scorer_runs_out_of_memory_before_its_function(
    in_aws: Any, monkeypatch: pytest.MonkeyPatch, function: int | None, scorer: int
) -> None:
    given: list[int] = []

    def judged(_scorer: Json, _call: Json, limits: cage.CageLimits) -> Judgement:
        given.append(limits.memory_bytes)
        return Judgement((), None, 1, 1)

    in_aws(_invoked)
    monkeypatch.setattr(cage, "judge", judged)
    if function is not None:
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", str(function))
    code_scoring._run(SCORER, CALL, 30)
    assert given == [scorer * 2**20]


@pytest.mark.parametrize("machine", ["aarch64", "x86_64"])
def test_a_judgement_costs_what_lambda_charges(
    in_aws: Any, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    monkeypatch.setenv(remote_cage.MEMORY, "2048")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    of_gb_second = aws.GB_SECOND if machine == "aarch64" else aws.GB_SECOND_X86
    client = in_aws(_invoked)
    started = time.monotonic()
    judgement = code_scoring._run(SCORER, CALL, 30)
    passed = time.monotonic() - started
    least = judgement.wall_ms / 1000 * 2 * of_gb_second
    most = (passed + 0.001) * 2 * of_gb_second
    assert aws.INVOCATION + least <= judgement.dollars <= aws.INVOCATION + most
    client.failed = True
    assert code_scoring._run(SCORER, CALL, 30).dollars > aws.INVOCATION, "it is paid as well"


def test_the_function_refuses_another_source_than_the_runner_decided_on(
    in_aws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tampered(event: Json) -> Json:
        return _invoked({**event, "scorer": {**event["scorer"], "call_source": "return 1"}})

    in_aws(tampered)
    monkeypatch.setattr(cage, "_Process", None)
    with pytest.raises(errors.FeatureDisabled, match="changed on its way"):
        code_scoring._run(SCORER, CALL, 30)


def test_the_function_is_called_once(in_aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a call that Lambda refused before it began is made again."""
    asked: list[str] = []
    monkeypatch.setattr(remote_cage, "_PAUSES", (0.001, 0.002))

    def busy(event: Json) -> Json:
        asked.append("TooManyRequestsException" if len(asked) < 2 else "")
        if asked[-1]:
            raise ClientError({"Error": {"Code": asked[-1]}}, "Invoke")
        return _invoked(event)

    in_aws(busy)
    assert code_scoring._run(SCORER, CALL, 30).failure is None
    assert len(asked) == 3
    monkeypatch.undo()
    client = remote_cage._client(315)
    assert client.meta.config.retries["total_max_attempts"] == 1
    assert client.meta.config.read_timeout == 315
    assert remote_cage.EXTRA_SECONDS < code_scoring.RESERVED_SECONDS, "within the runner's call"


def test_the_function_forgets_its_credentials(in_aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: list[bool] = []
    monkeypatch.setattr(code_scorers.app, "set_dumpable", hidden.append)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "secret")
    in_aws(_invoked)
    monkeypatch.setattr(code_scorers.app, "set_dumpable", hidden.append)
    assert code_scoring._run(SCORER, CALL, 30).failure is None
    assert not [name for name in os.environ if name.startswith(("AWS_ACCESS", "AWS_SECRET"))]
    assert "AWS_SESSION_TOKEN" not in os.environ
    assert hidden == [False]


def test_the_judge_runner_runs_no_code_itself_in_lambda(
    in_aws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: Any) -> Judgement:
        raise AssertionError("it ran here")

    in_aws(lambda _event: {"unavailable": "This system cannot lock up a process (prctl)."})
    monkeypatch.setattr(cage, "judge", forbidden)
    with pytest.raises(errors.FeatureDisabled, match="cannot lock up a process"):
        code_scoring._run(SCORER, CALL, 30)
    monkeypatch.delenv(remote_cage.FUNCTION)
    with pytest.raises(errors.FeatureDisabled, match="no function for scorers"):
        code_scoring._run(SCORER, CALL, 30)


def test_the_function_says_that_lambda_offers_no_cage(
    in_aws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import sys; sys.path.insert(0, {!r}); import mlcore.scorer_cage.inside; "
        "mlcore.scorer_cage.syscalls._SECCOMP = dict.fromkeys(('x86_64', 'aarch64'), 9999); "
        "mlcore.scorer_cage.inside.main()"
    )
    monkeypatch.setattr(cage, "_PROGRAM", program)
    in_aws(_invoked)
    with pytest.raises(errors.FeatureDisabled, match="seccomp failed"):
        code_scoring._run(SCORER, CALL, 30)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"null",
        b"[]",
        b"[" * 100_000,
        {},
        {"feedback": [], "failure": None, "wall_ms": 1},
        {"feedback": None, "failure": None, "wall_ms": 1, "cpu_ms": 1},
        {"feedback": [], "failure": None, "wall_ms": "x", "cpu_ms": 1},
        {"feedback": [{"name": "q", "valid": False}], "failure": None, "wall_ms": 1, "cpu_ms": 1},
        {"feedback": [{"name": "q", "trace_id": 1}], "failure": None, "wall_ms": 1, "cpu_ms": 1},
        {"feedback": [{"name": "q"}] * 101, "failure": None, "wall_ms": 1, "cpu_ms": 1},
    ],
)
def test_answers_of_the_function_are_untrusted(in_aws: Any, answer: Any) -> None:
    in_aws(lambda _event: answer)
    judgement = code_scoring._run(SCORER, CALL, 30)
    assert judgement.feedback == ()
    assert judgement.failure == "The answer of the scorer's function cannot be used."


def test_a_function_that_dies_fails_one_judgement(in_aws: Any) -> None:
    client = in_aws(lambda _event: {"errorType": "Runtime.ExitError"})
    client.failed = True
    assert "function ended with an error" in str(code_scoring._run(SCORER, CALL, 30).failure)


def test_a_trace_that_is_too_large_is_not_sent(in_aws: Any) -> None:
    client = in_aws(_invoked)
    call = {**CALL, "outputs": "x" * remote_cage.MAX_REQUEST_BYTES}
    assert "larger than 6000000 bytes" in str(code_scoring._run(SCORER, call, 30).failure)
    assert client.payloads == []


def test_a_call_without_an_answer_is_paid_and_made_later(
    in_aws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_event: Json) -> Json:
        raise ReadTimeoutError(endpoint_url="https://lambda")

    monkeypatch.setenv(remote_cage.MEMORY, "2048")
    in_aws(broken)
    with pytest.raises(errors.TemporarilyUnavailable) as lost:
        code_scoring._run(SCORER, CALL, 30)
    assert isinstance(lost.value, remote_cage.AnswerLost)
    assert aws.INVOCATION < lost.value.dollars < 0.001


def test_a_function_that_cannot_be_reached_costs_nothing(in_aws: Any) -> None:
    def broken(_event: Json) -> Json:
        raise EndpointConnectionError(endpoint_url="https://lambda")

    in_aws(broken)
    with pytest.raises(errors.TemporarilyUnavailable) as missing:
        code_scoring._run(SCORER, CALL, 30)
    assert not isinstance(missing.value, remote_cage.AnswerLost)


def test_too_many_calls_are_no_failure(in_aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(_event: Json) -> Json:
        metadata: Any = {"HTTPStatusCode": 429}
        raise ClientError({"Error": {"Code": "Any"}, "ResponseMetadata": metadata}, "Invoke")

    monkeypatch.setattr(remote_cage, "_PAUSES", (0.001,))
    in_aws(busy)
    with pytest.raises(remote_cage.Throttled):
        code_scoring._run(SCORER, CALL, 30)


def test_the_connection_is_kept_alive_while_a_scorer_runs() -> None:
    session = remote_cage._client(20)._endpoint.http_session
    (url, pool) = ("https://lambda.example", session._manager)
    with socket.socket() as made:
        for option in pool.connection_from_url(url).conn_kw["socket_options"]:
            made.setsockopt(*option)
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 60


def test_a_missing_function_is_no_cage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(remote_cage.FUNCTION, raising=False)
    with pytest.raises(CageUnavailable):
        remote_cage.judge(SCORER.in_the_cage(), CALL, 30)
