"""Requests to Kubeflow's registry as its rules take them, and the versions of its API."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from mlcore.http import Request, Response
from mlcore.http.kubeflow import JSON, Answer, Made, Versions
from mlcore.kubeflow import not_a_number
from mlcore.kubeflow.asked import Asked
from mlcore.kubeflow.entity import V1, Entity, response

__all__ = ["JSON", "MANNER", "OLD", "PREFIX", "Call", "Function", "Made", "answering", "api_of"]

PREFIX: Final = "/api/model_registry"
OLD: Final = "v1alpha3"

_VERSIONS: Final = Versions({f"{PREFIX}/{OLD}": f"{PREFIX}/{V1}"})

MANNER: Final = _VERSIONS.manner()


class Call(NamedTuple):
    """A request as the rules of a domain take it."""

    asked: Asked
    request: Request
    api: str

    @property
    def workspace(self) -> str:
        return self.request.workspace

    @property
    def username(self) -> str | None:
        """The caller; None where nobody needs to log in."""
        return self.request.username()

    def shown(self, entity: Entity) -> dict[str, Any]:
        return response(entity, self.api)


Function = Callable[[Call], Answer]


def answering(function: Function) -> Callable[[Any, Request], Response]:
    @functools.wraps(function)
    def answer(asked: Asked, request: Request) -> Answer:
        found = function(Call(asked, request, api_of(request.path)))
        if not not_a_number.reads_the_word(request.headers.get("user-agent", "")):
            not_a_number.told(found.answer if isinstance(found, Made) else found)
        return found

    return _VERSIONS.answering(answer)


def api_of(path: str) -> str:
    return OLD if path.startswith(f"{PREFIX}/{OLD}/") else V1
