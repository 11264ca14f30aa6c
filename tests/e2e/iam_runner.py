"""The local runner with what API Gateway does for Authentication=iam: it checks the signatures of
requests itself, answers 403 where they are wrong, and tells the functions who has signed.

python -m tests.e2e.iam_runner ARGUMENTS_OF_THE_RUNNER
"""

from __future__ import annotations

import os
import sys
from typing import Any
from unittest.mock import patch

import local.http.application
import local.http.lambda_event
import local.runner
from local.__main__ import main
from local.http.lambda_event import HttpRequest, failure, from_http
from local.http.routes import Match
from tests.doubles.signatures import Caller, Sent, Service, Wrong

ARN = "arn:aws:iam::000000000000:user/ada"
ENVIRONMENT = ("CALLER_ACCESS_KEY", "CALLER_SECRET_KEY", "CALLER_TOKEN", "CALLER_REGION")
OPEN = "/health"
"""By which the tests know that the runner is up."""


class Application(local.http.application.Application):
    """Whatever comes must be signed."""

    service: Service

    def _invoke(self, function: Any, request: HttpRequest, match: Match) -> Any:
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        sent = Sent(request.method, request.path, request.query, headers, request.body)
        try:
            if request.path != OPEN:
                self.service.check(sent)
        except Wrong as why:
            sys.stderr.write(f"{request.method} {request.path}: {why}\n")
            return failure(403, "Forbidden"), None
        return super()._invoke(function, request, match)


def signed_event(request: HttpRequest, match: Match) -> dict[str, Any]:
    """The event, with the caller in it."""
    event = from_http(request, match)
    event["requestContext"]["authorizer"] = {"iam": {"userArn": ARN}}
    return event


if __name__ == "__main__":
    access_key, secret_key, token, region = (os.environ[name] for name in ENVIRONMENT)
    Application.service = Service("execute-api", region, Caller(access_key, secret_key, token))
    with (
        patch.object(local.http.lambda_event, "from_http", signed_event),
        patch.object(local.runner, "Application", Application),
    ):
        code = main()
    sys.exit(code)
