"""Stops the requests to a stack while its data are restored, and admits them again afterwards.

API Gateway answers 429 to every request if the throttling limits of a stage are zero, and clients
repeat their requests for minutes. Requests that were admitted before continue, for up to 15 minutes
if they call a model, and so do the functions behind the stream, the queues and the schedules. A
deployment that changes no setting of the stages leaves them stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from operate.restore.api_stages import NO_LIMITS, STOPPED, HttpStage, Limits, RestStage, Stage
from operate.restore.failure import CannotRestore

_HTTP: Final = ("Api", "ApiStage")
_REST: Final = ("Streams", "StreamsStage")
"""Logical ids of an API and of its stage in the template."""


class Freeze:
    """Makes every API Gateway API of a stack refuse all requests (429), or admit them again."""

    def __init__(self, cloudformation: Any, http_apis: Any, rest_apis: Any, stack: str) -> None:
        """``http_apis`` is a client for ``apigatewayv2``, ``rest_apis`` one for ``apigateway``.
        Raises CannotRestore if the stack has no API."""
        self._cloudformation = cloudformation
        self._stack = stack
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        physical = {
            resource["LogicalResourceId"]: resource["PhysicalResourceId"]
            for page in pages
            for resource in page["StackResourceSummaries"]
            if resource.get("PhysicalResourceId")
            and resource["ResourceStatus"] != "DELETE_COMPLETE"
        }
        self._stages: list[Stage] = []
        if named := _both(physical, _HTTP):
            self._stages.append(HttpStage(http_apis, rest_apis, *named))
        if named := _both(physical, _REST):
            self._stages.append(RestStage(rest_apis, *named))
        if not self._stages:
            raise CannotRestore(f"the stack {stack} has no API")

    def admitting(self) -> list[str]:
        """Returns the names of the API Gateway APIs that are not stopped but admit requests. A name
        is that of the stack's output with the API's address."""
        states = [(stage.name, stage.read()) for stage in self._stages]
        return [name for name, state in states if state.limits != STOPPED or state.exempt]

    def stop(self) -> list[str]:
        """Makes API Gateway answer 429 to every request, and keeps the limits of each stage in the
        stage. A stage that is stopped stays as it is. Returns the names of the APIs.

        Raises:
            CannotRestore: routes have limits of their own, so they would go on. Nothing was
                changed.
        """
        states = [(stage, stage.read()) for stage in self._stages]
        for stage, state in states:
            if state.exempt:
                raise CannotRestore(
                    f"{stage.name}: {', '.join(state.exempt)} has throttling limits of its own,"
                    " which the limits of the stage do not stop. Remove them, or set them to 0"
                )
        for stage, state in states:
            if state.limits != STOPPED:
                stage.write(STOPPED, before=state.limits)
        return [stage.name for stage in self._stages]

    def end(self) -> dict[str, Limits]:
        """Admits requests again, with the throttling limits that each API stage had before it was
        stopped or, if those are not recorded, with the limits in the stack's parameters. Limits
        that somebody, such as a deployment, has set since the stop are left as they are.

        Returns:
            The limits that now apply, by the name of the API; without APIs that were not stopped.
        """
        now = {}
        for stage in self._stages:
            state = stage.read()
            if state.limits == STOPPED:
                stage.write(state.before or self._given_limits(), before=None)
            elif state.before is not None:
                stage.write(state.limits, before=None)
            else:
                continue
            now[stage.name] = stage.read().limits
        return now

    def _given_limits(self) -> Limits:
        """Returns the limits that the stack's parameters give to both stages."""
        [stack] = self._cloudformation.describe_stacks(StackName=self._stack)["Stacks"]
        given = {
            parameter["ParameterKey"]: parameter["ParameterValue"]
            for parameter in stack.get("Parameters", ())
        }
        rate, burst = (int(given.get(f"Throttling{name}", 0)) for name in ("Rate", "Burst"))
        return Limits(rate, burst) if rate else NO_LIMITS


def _both(physical: Mapping[str, str], logical: tuple[str, str]) -> list[str]:
    """Returns the physical ids of an API and its stage; nothing if the stack lacks one."""
    named = [physical[name] for name in logical if name in physical]
    return named if len(named) == len(logical) else []
