"""Runs the code of scorers in a Lambda function of its own, ``functions/code_scorers``.

The function's answer is untrusted, like that of a process with a scorer's code.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from mlcore import aws_clients
from mlcore.errors import TemporarilyUnavailable
from mlcore.scorer_cage import answers
from mlcore.scorer_cage.cage import CageUnavailable, Judgement

FUNCTION: Final = "CODE_SCORERS_FUNCTION"
"""Environment: the ARN of the function."""
MAX_REQUEST_BYTES: Final = 6_000_000
"""Lambda's limit for the payload of a synchronous call is 6 MB."""
_READ_SECONDS: Final = 60


def judge(scorer: Mapping[str, Any], call: Mapping[str, Any], seconds: float) -> Judgement:
    """Runs a scorer in the function, as :func:`mlcore.scorer_cage.cage.judge` does.

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
    try:
        response = _client().invoke(FunctionName=function, Payload=request)
        text = response["Payload"].read()
    except (BotoCoreError, ClientError) as error:
        raise TemporarilyUnavailable("The function of code scorers cannot be called.") from error
    if response.get("FunctionError"):
        return _failed(
            "The scorer's function ended with an error; it may have used too much memory."
        )
    return _judgement(text)


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
    return aws_clients.create_client("lambda", _READ_SECONDS)
