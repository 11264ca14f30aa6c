"""Runs the code of scorers in a Lambda function of its own, ``functions/code_scorers``.

The function's answer is untrusted, like that of a process with a scorer's code. So the price of a
call is computed from the time that is measured here.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import socket
import time
from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    IncompleteReadError,
)

from mlcore import aws_clients
from mlcore.errors import TemporarilyUnavailable
from mlcore.prices import lambda_calls
from mlcore.scorer_cage import answers
from mlcore.scorer_cage.cage import CageUnavailable, Judgement
from mlcore.wire.json_text import load_json

FUNCTION: Final = "CODE_SCORERS_FUNCTION"
"""Environment: the ARN of the function."""
MEMORY: Final = "CODE_SCORERS_MEMORY"
"""Environment: the function's memory in MiB."""
MAX_REQUEST_BYTES: Final = 6_000_000
"""Lambda's limit for the payload of a synchronous call is 6 MB."""
EXTRA_SECONDS: Final = 15
"""Seconds that a call may take in addition to the judgement, for the start of the function and for
its answer."""
_KEEP_ALIVE: Final = (
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 60),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 60),
)
"""TCP keepalive options of the connection, which is idle while a scorer runs (Linux would send the
first probe after two hours). Options that this system lacks are left out."""
_NOT_CALLED: Final = "The function of code scorers cannot be called."
_REFUSED_FOR_NOW: Final = frozenset(
    (
        *("TooManyRequestsException", "ThrottlingException", "EC2ThrottledException"),
        # These come from a function in a VPC that was not called for weeks.
        *("ResourceNotReadyException", "ENINotReadyException", "ResourceConflictException"),
    )
)
_PAUSES: Final = (0.5, 1.0, 2.0)
"""Seconds before each retry of a call that Lambda refused before it began, or that found no
connection."""


class Throttled(Exception):
    """Raised if Lambda does not begin a call of the function that runs scorers' code, because too
    many functions run or this one is not ready. The call may be made later."""


class AnswerLost(TemporarilyUnavailable):
    """Raised if the Lambda function that runs code scorers was called and its answer did not
    arrive. The scorer may have run, so the price of the call (``dollars``) counts."""

    def __init__(self, message: str, dollars: float) -> None:
        super().__init__(message)
        self.dollars = dollars


def judge(scorer: Mapping[str, Any], call: Mapping[str, Any], seconds: float) -> Judgement:
    """Runs a scorer in the Lambda function for code scorers, and returns its feedback and costs, as
    :func:`mlcore.scorer_cage.cage.judge` does. Makes one call (only a call that did not begin is
    repeated), which lasts at most :data:`EXTRA_SECONDS` longer than ``seconds``, the time limit of
    the scorer.

    Raises:
        CageUnavailable: the deployment has no such function, or Lambda offers no cage. The scorer
            has not run.
        Throttled: too many functions run, or this one is not ready.
        AnswerLost: the scorer may have run.
        TemporarilyUnavailable: the function could not be called.
    """
    function = os.environ.get(FUNCTION)
    if not function:
        raise CageUnavailable("This deployment has no function for scorers that are code.")
    request = json.dumps({"scorer": scorer, "call": call, "seconds": seconds}).encode()
    if len(request) > MAX_REQUEST_BYTES:
        return _failed(f"The trace is larger than {MAX_REQUEST_BYTES} bytes.")
    response, text, paid = _invoke(function, request, math.ceil(seconds) + EXTRA_SECONDS)
    if response.get("FunctionError"):
        made = _failed(
            "The scorer's function ended with an error; it may have used too much memory."
        )
    else:
        made = _judgement(text)
    return made._replace(dollars=paid)


def _invoke(
    function: str, request: bytes, read_seconds: int
) -> tuple[dict[str, Any], bytes, float]:
    """Calls the function once. A call that Lambda refuses before it begins is made again. Returns
    the response, its payload and the price of the call. Raises the errors of :func:`judge`."""
    client = _client(read_seconds)
    for pause in (*_PAUSES, None):
        started = time.monotonic()  # refused attempts before this one cost nothing
        try:
            response: dict[str, Any] = client.invoke(FunctionName=function, Payload=request)
            text: bytes = response["Payload"].read()
        except ClientError as error:
            if not _is_throttled(error):
                raise TemporarilyUnavailable(_NOT_CALLED) from error
            if pause is None:
                raise Throttled from error
            time.sleep(pause)
        except ConnectionError as error:  # nothing was sent
            if pause is None:
                raise TemporarilyUnavailable(_NOT_CALLED) from error
            time.sleep(pause)
        except (HTTPClientError, IncompleteReadError) as error:
            raise AnswerLost(_NOT_CALLED, _dollars(time.monotonic() - started)) from error
        except BotoCoreError as error:
            raise TemporarilyUnavailable(_NOT_CALLED) from error
        else:
            return response, text, _dollars(time.monotonic() - started)
    raise AssertionError  # unreachable: the last attempt returns or raises


def _is_throttled(error: ClientError) -> bool:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status == 429 or error.response.get("Error", {}).get("Code") in _REFUSED_FOR_NOW


def _dollars(seconds: float) -> float:
    """Returns the price of a call; 0 if the function's memory is unknown."""
    memory_mib = int(os.environ.get(MEMORY) or 0)
    is_arm = platform.machine() == "aarch64"
    return lambda_calls.dollars(seconds, memory_mib, arm=is_arm) if memory_mib else 0.0


def _judgement(text: bytes) -> Judgement:
    try:
        fields = load_json(text)
        if "unavailable" in fields:
            raise CageUnavailable(str(fields["unavailable"])[:1000])
        failure = fields["failure"]
        return Judgement(
            answers.parse(json.dumps(fields["feedback"]).encode()),
            None if failure is None else str(failure)[:1000],
            int(fields["wall_ms"]),
            int(fields["cpu_ms"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError, answers.MalformedAnswer):
        return _failed("The answer of the scorer's function cannot be used.")


def _failed(reason: str) -> Judgement:
    return Judgement((), reason, 0, 0)


@functools.lru_cache(maxsize=8)  # scorers seldom have many different timeouts
def _client(read_seconds: int) -> Any:
    # botocore must not repeat a call whose answer is lost: the scorer would run twice.
    client = aws_clients.create_client("lambda", read_seconds, attempts=1)
    # botocore switches TCP's keepalive on, and has no setting for its times.
    options = client._endpoint.http_session._socket_options
    options += [
        (level, getattr(socket, name), value)
        for level, name, value in _KEEP_ALIVE
        if hasattr(socket, name)
    ]
    return client
