"""The stages of a stack's two APIs in API Gateway: how many requests each admits, and how many it
admitted before it was stopped.

The limits of before are a variable of the stage, written by the same call as the limits: so they
outlive the process that stopped the stage, and no interruption leaves one without the other. The
functions get the variable with each request, and ignore it.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, Protocol

BEFORE: Final = "limits_before_freeze"
"""The variable of a stage that has the limits of before."""
_WRITTEN: Final = re.compile(r"(none|-?\d+(?:\.\d+)?),(none|-?\d+)")


class Limits(NamedTuple):
    """How many requests a second, and how many at once, a stage of API Gateway admits. None where
    the stage has no limit of its own: then the quota of the AWS account applies."""

    rate: float | None
    """Requests a second."""
    burst: int | None
    """Requests at one moment."""

    def __str__(self) -> str:
        """As a stage variable, whose value has neither spaces nor braces: ``2000.0,4000``."""
        return ",".join("none" if limit is None else str(limit) for limit in self)


STOPPED: Final = Limits(0, 0)
"""API Gateway answers 429 to every request."""
NO_LIMITS: Final = Limits(None, None)
"""A stage without limits of its own."""


class State(NamedTuple):
    """How many requests a stage of API Gateway admits now, and admitted before it was stopped."""

    limits: Limits
    before: Limits | None
    """The limits before the stage was stopped; None if it was not stopped, or nobody knows."""
    exempt: list[str]
    """Routes with limits of their own, which those of the stage do not stop."""


class Stage(Protocol):
    """A stage of an API in API Gateway, which can be made to refuse all requests."""

    name: str

    def read(self) -> State:
        """Reads from API Gateway the limits of the stage, now and before it was stopped."""

    def write(self, limits: Limits, before: Limits | None) -> None:
        """Sets the request limits of the API Gateway stage, and keeps its earlier limits ``before``
        in a variable of the stage, which None removes. All other variables stay."""


class HttpStage:
    """API Gateway's stage of the HTTP API (``ApiUrl``), which serves all routes."""

    name = "ApiUrl"

    def __init__(self, apis: Any, accounts: Any, api: str, stage: str) -> None:
        """``apis`` is a client for ``apigatewayv2``, ``accounts`` one for ``apigateway``."""
        self._apis = apis
        self._accounts = accounts
        self._named = {"ApiId": api, "StageName": stage}

    def read(self) -> State:
        stage = self._apis.get_stage(**self._named)
        variables = stage.get("StageVariables", {})
        exempt = [
            route
            for route, settings in stage.get("RouteSettings", {}).items()
            if _http_limits(settings) not in (STOPPED, NO_LIMITS)
        ]
        limits = _http_limits(stage.get("DefaultRouteSettings", {}))
        return State(limits, limits_of(variables.get(BEFORE)), exempt)

    def write(self, limits: Limits, before: Limits | None) -> None:
        """Sets how many requests the stage admits; writes ``before`` to a stage variable, or
        removes it. All other settings stay. A limit of None becomes the account's quota in both,
        since API Gateway cannot remove a limit. The quota is read before requests stop, so that a
        missing right to read it is noticed then, not after."""
        stage = self._apis.get_stage(**self._named)
        limits = self._set_limits(limits)
        settings = {"ThrottlingRateLimit": limits.rate, "ThrottlingBurstLimit": limits.burst}
        variables = dict(stage.get("StageVariables", {}))
        if before is not None:
            variables[BEFORE] = str(self._set_limits(before))
        elif BEFORE in variables:
            variables[BEFORE] = ""  # removes it
        self._apis.update_stage(
            **self._named,
            DefaultRouteSettings={**stage.get("DefaultRouteSettings", {}), **settings},
            StageVariables=variables,
        )

    def _set_limits(self, limits: Limits) -> Limits:
        if None not in limits:
            return limits
        quota = self._accounts.get_account()["throttleSettings"]
        return Limits(
            quota["rateLimit"] if limits.rate is None else limits.rate,
            quota["burstLimit"] if limits.burst is None else limits.burst,
        )


class RestStage:
    """The stage of the deployment's REST API in API Gateway (``StreamsUrl``), which serves streamed
    calls of AI models; CloudFront sends requests to ``/gateway/*`` there."""

    name = "StreamsUrl"
    _ALL: Final = "*/*"
    """The key of the settings of all methods that have no settings of their own."""

    def __init__(self, apis: Any, api: str, stage: str) -> None:
        """``apis`` is a client for ``apigateway``."""
        self._apis = apis
        self._named = {"restApiId": api, "stageName": stage}

    def read(self) -> State:
        stage = self._apis.get_stage(**self._named)
        methods = {
            method: Limits(
                settings.get("throttlingRateLimit"), settings.get("throttlingBurstLimit")
            )
            for method, settings in stage.get("methodSettings", {}).items()
        }
        limits = methods.pop(self._ALL, NO_LIMITS)
        exempt = [method for method, own in methods.items() if own not in (STOPPED, NO_LIMITS)]
        return State(limits, limits_of(stage.get("variables", {}).get(BEFORE)), exempt)

    def write(self, limits: Limits, before: Limits | None) -> None:
        """Sets how many requests the stage admits; writes ``before`` to a stage variable, or
        removes it. ``NO_LIMITS`` removes all settings under ``*/*``: where a stage has settings
        there, API Gateway returns limits among them."""
        stage = self._apis.get_stage(**self._named)
        operations = []
        if limits.rate is not None:
            operations.append(_replacing(f"/{self._ALL}/throttling/rateLimit", limits.rate))
        if limits.burst is not None:
            operations.append(_replacing(f"/{self._ALL}/throttling/burstLimit", limits.burst))
        if limits == NO_LIMITS and self._ALL in stage.get("methodSettings", {}):
            operations.append({"op": "remove", "path": f"/{self._ALL}"})
        if before is not None:
            operations.append(_replacing(f"/variables/{BEFORE}", before))
        elif BEFORE in stage.get("variables", {}):
            operations.append({"op": "remove", "path": f"/variables/{BEFORE}"})
        self._apis.update_stage(**self._named, patchOperations=operations)


def _replacing(path: str, value: object) -> dict[str, str]:
    return {"op": "replace", "path": path, "value": str(value)}


def _http_limits(settings: dict[str, Any]) -> Limits:
    return Limits(settings.get("ThrottlingRateLimit"), settings.get("ThrottlingBurstLimit"))


def limits_of(variable: str | None) -> Limits | None:
    """Returns the limits in the text of an API Gateway stage variable; None if there is no such
    variable, or if its text is not one that ``Limits.__str__`` returns."""
    match = _WRITTEN.fullmatch(variable or "")
    if match is None:
        return None
    rate, burst = match.groups()
    return Limits(None if rate == "none" else float(rate), None if burst == "none" else int(burst))
