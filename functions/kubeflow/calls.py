"""The argument of every route function of Kubeflow's registry (:class:`KubeflowCall`), and the two
versions of its API."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from mlcore.http import Request, Response
from mlcore.http.kubeflow_responses import Answer, AnswerWithStatus, Versions
from mlcore.kubeflow import not_a_number
from mlcore.kubeflow.entity import V1, Entity, response
from mlcore.kubeflow.errors import ExternalIdTaken
from mlcore.kubeflow.registry_request import RegistryRequest
from mlcore.repos.kubeflow import external_ids

PREFIX: Final = "/api/model_registry"
V1ALPHA3: Final = "v1alpha3"

_VERSIONS: Final = Versions({f"{PREFIX}/{V1ALPHA3}": f"{PREFIX}/{V1}"})

ERROR_FORMAT: Final = _VERSIONS.error_format()


class KubeflowCall(NamedTuple):
    """A parsed request to Kubeflow's model registry, with the version of the API that its path
    names."""

    parsed: RegistryRequest
    request: Request
    api: str
    """The version of the API that the path names: ``v1`` or ``v1alpha3``."""

    @property
    def workspace(self) -> str:
        return self.request.workspace

    @property
    def username(self) -> str | None:
        """The caller's name; None without a login."""
        return self.request.username()

    def shown(self, entity: Entity) -> dict[str, Any]:
        return response(entity, self.api)


RouteFunction = Callable[[KubeflowCall], Answer]


def route_function(function: RouteFunction) -> Callable[[Any, Request], Response]:
    """Adapts a function that takes a :class:`KubeflowCall` to the signature of route functions. The
    value NaN of a metric is returned as 0 with the custom property ``is_nan``, unless the client
    can read the literal ``NaN``. If an external id is held by an entity that no longer exists, the
    function is called again after the lock was deleted."""

    @functools.wraps(function)
    def answer(parsed: RegistryRequest, request: Request) -> Answer:
        call = KubeflowCall(parsed, request, api_version_of(request.path))
        try:
            result = function(call)
        except ExternalIdTaken as taken:
            if not external_ids.free_abandoned(taken.kind, taken.external_id, call.workspace):
                raise
            result = function(call)
        if not not_a_number.reads_nan(request.headers.get("user-agent", "")):
            not_a_number.mark_nan(result.answer if isinstance(result, AnswerWithStatus) else result)
        return result

    return _VERSIONS.answering(answer)


def api_version_of(path: str) -> str:
    return V1ALPHA3 if path.startswith(f"{PREFIX}/{V1ALPHA3}/") else V1
