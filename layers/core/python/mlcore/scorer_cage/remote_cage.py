"""Runs the code of scorers in a Lambda function of its own, ``functions/code_scorers``.

The function's answer is untrusted, like that of a process with a scorer's code. So the price of a
call follows from the time that passed here.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import time
from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from mlcore import aws_clients
from mlcore.errors import TemporarilyUnavailable
from mlcore.prices import function_calls
from mlcore.scorer_cage import answers
from mlcore.scorer_cage.cage import MAX_SECONDS, CageUnavailable, Judgement

FUNCTION: Final = "CODE_SCORERS_FUNCTION"
"""Environment: the ARN of the function."""
MEMORY: Final = "CODE_SCORERS_MEMORY"
"""Environment: the function's memory in MiB."""
MAX_REQUEST_BYTES: Final = 6_000_000
"""Lambda's limit for the payload of a synchronous call is 6 MB."""
_READ_SECONDS: Final = MAX_SECONDS + 60
_PAUSES: Final = (0.5, 1.0, 2.0)
"""Seconds before a call is made again that Lambda refused because too many run."""


def judge(scorer: Mapping[str, Any], call: Mapping[str, Any], seconds: float) -> Judgement:
    """Runs a scorer in the function, as :func:`mlcore.scorer_cage.cage.judge` does: in one call.

    Raises:
        CageUnavailable: there is no such function, or Lambda offers no cage. The scorer has not
            run.
        TemporarilyUnavailable: the function could not be called.
    """
    function = os.environ.get(FUNCTION)
    if not function:
        raise CageUnavailable("This deployment has no function for scorers that are code.")
    request = json.dumps({"scorer": scorer, "call": call, "seconds": seconds}).encode()
    if len(request) > MAX_REQUEST_BYTES:
        return _failed(f"The trace is larger than {MAX_REQUEST_BYTES} bytes.")
    started = time.monotonic()
    try:
        response = _invoke(function, request)
        text = response["Payload"].read()
    except (BotoCoreError, ClientError) as error:
        raise TemporarilyUnavailable("The function of code scorers cannot be called.") from error
    paid = _dollars(time.monotonic() - started)
    if response.get("FunctionError"):
        made = _failed(
            "The scorer's function ended with an error; it may have used too much memory."
        )
    else:
        made = _judgement(text)
    return made._replace(dollars=paid)


def _invoke(function: str, request: bytes) -> dict[str, Any]:
    """Calls the function once. A call that Lambda refuses before it begins is made again."""
    for pause in (*_PAUSES, None):
        try:
            answer: dict[str, Any] = _client().invoke(FunctionName=function, Payload=request)
        except ClientError as error:
            is_refused = error.response.get("Error", {}).get("Code") == "TooManyRequestsException"
            if not is_refused or pause is None:
                raise
            time.sleep(pause)
        else:
            return answer
    raise AssertionError  # unreachable: the last attempt returns or raises


def _dollars(seconds: float) -> float:
    """Returns the price of a call; 0 if the function's memory is unknown."""
    memory_mib = int(os.environ.get(MEMORY) or 0)
    is_arm = platform.machine() == "aarch64"
    return function_calls.dollars(seconds, memory_mib, arm=is_arm) if memory_mib else 0.0


def _judgement(text: bytes) -> Judgement:
    try:
        fields = json.loads(text)
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


@functools.cache
def _client() -> Any:
    # A call whose answer is lost has run, and would run once more.
    return aws_clients.create_client("lambda", _READ_SECONDS, attempts=1)
