"""Stops the requests to a stack while its data are restored, and admits them again afterwards.

API Gateway answers 429 to every request if the throttling limits of a stage are zero, and clients
repeat their requests for minutes. The functions behind the stream and the queues continue, so
accepted work is finished. A deployment that does not change the stage leaves it stopped.
"""

from __future__ import annotations

from typing import Any, Final

from operate.restore.failure import CannotRestore

UNLIMITED: Final = (10_000, 5_000)
"""Rate and burst of a stack without limits of its own: the quotas of an account (AWS, "Quotas for
API Gateway"), so they limit nothing."""
_API: Final = "Api"
"""Logical id of the API, of which the template has one stage."""
_STAGE: Final = "$default"


class ApiStage:
    """The API Gateway stage of a stack's API."""

    def __init__(self, cloudformation: Any, apis: Any, stack: str) -> None:
        """Raises CannotRestore if the stack has no API."""
        self._cloudformation = cloudformation
        self._apis = apis
        self._stack = stack
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        api_ids = [
            resource["PhysicalResourceId"]
            for page in pages
            for resource in page["StackResourceSummaries"]
            if resource["LogicalResourceId"] == _API
        ]
        if not api_ids:
            raise CannotRestore(f"the stack {stack} has no API")
        [self._api] = api_ids

    def is_stopped(self) -> bool:
        return float(self._settings().get("ThrottlingRateLimit", 1)) == 0

    def stop(self) -> None:
        """Makes API Gateway answer 429 to every request."""
        self._limit(0, 0)

    def continue_(self) -> tuple[int, int]:
        """Admits requests again. Returns the rate and burst limits that now apply: those of the
        stack's parameters, or no limits."""
        [stack] = self._cloudformation.describe_stacks(StackName=self._stack)["Stacks"]
        given = {
            parameter["ParameterKey"]: parameter["ParameterValue"]
            for parameter in stack.get("Parameters", ())
        }
        rate, burst = (int(given.get(f"Throttling{name}", 0)) for name in ("Rate", "Burst"))
        limits = (rate, burst) if rate else UNLIMITED
        self._limit(*limits)
        return limits

    def _settings(self) -> dict[str, Any]:
        stage = self._apis.get_stage(ApiId=self._api, StageName=_STAGE)
        return dict(stage.get("DefaultRouteSettings", {}))

    def _limit(self, rate: int, burst: int) -> None:
        settings = {"ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst}
        self._apis.update_stage(
            ApiId=self._api,
            StageName=_STAGE,
            DefaultRouteSettings={**self._settings(), **settings},
        )
