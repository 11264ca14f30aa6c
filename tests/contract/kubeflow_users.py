"""Two users of Kubeflow's API who may not read by default, and what each of them made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import pytest

import kubeflow.app
from kubeflow.calls import ERROR_FORMAT
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import users
from tests.contract.api import Answer
from tests.contract.conftest import Store
from tests.contract.kubeflow_api import KubeflowApi, typed

SECRET: Final = "SECRET"
"""In every text of what belongs to the first user alone."""

MODES: Final = ("basic", "oidc", "iam")

MISSING: Final = "2147483647"

Pairs = Sequence[tuple[str, Any]]
"""The members of a JSON object in order; a key may come more than once."""


class Kind(NamedTuple):
    """What of each kind is called in paths, and by which fields of a body it is named."""

    path: str
    fields: tuple[str, ...] = ()


class KubeflowUser(KubeflowApi):
    """Calls as somebody who logged in."""

    def __init__(self, handler: Any, caller: dict[str, Any], api: str = "v1alpha3") -> None:
        super().__init__(api)
        self._handler, self._caller = handler, caller
        self.ids: dict[str, str] = {}
        """Of what the user made, by a word of :func:`make`."""
        self.marker = ""

    @property
    def username(self) -> str:
        name = self._caller.get("lambda", {}).get("username") or self._caller["iam"]["userArn"]
        return str(name)

    def send(
        self,
        method: str,
        path: str,
        body: str | None = None,
        query: Pairs = (),
        *,
        handler: Any = None,
    ) -> tuple[int, str]:
        """Status and body of the answer; ``path`` is whole, and the handler Kubeflow's unless
        another is given."""
        event = self.event(method, path, body, {})
        event["rawQueryString"] = urlencode(query)
        event["requestContext"]["authorizer"] = self._caller
        answer = (handler or self._handler)(event, None)
        return answer["statusCode"], str(answer["body"])

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Answer:
        text = None if body is None else json.dumps(body)
        whole = path if path.startswith("/") else f"/api/model_registry/{self._api}/{path}"
        status, answered = self.send(method, whole, text, tuple(query.items()))
        return Answer(status, json.loads(answered) if answered else {}, len(answered))


def caller_of(mode: str, name: str) -> dict[str, Any]:
    """What API Gateway tells of a caller in a mode of authentication."""
    if mode == "iam":
        return {"iam": {"userArn": f"arn:aws:iam::123456789012:user/{name}"}}
    return {"lambda": {"username": name, "is_admin": False, "method": mode}}


def make(user: KubeflowUser, marker: str, *, folder: str) -> None:
    """One entity of each kind. Environments and standalone artifacts, which everybody may read,
    say nothing.

    Args:
        folder: the user's own place in the artifact store.
    """
    user.marker = marker

    def made(path: str, **fields: Any) -> str:
        texts = {"description": marker, "customProperties": {"k": typed(marker)}}
        answer = user.post(path, **{**texts, **fields})
        return str(answer["id"])

    ids = user.ids
    model = ids["model"] = made(
        "registered_models", name=f"{marker} m", externalId=f"{marker} m", owner=marker
    )
    version = ids["version"] = made(
        "model_versions", name=f"{marker} v", externalId=f"{marker} v", registeredModelId=model
    )
    artifacts = f"model_versions/{version}/artifacts"
    for word, kind in (("model_artifact", "model-artifact"), ("doc_artifact", "doc-artifact")):
        ids[word] = made(
            artifacts,
            artifactType=kind,
            name=f"{marker} {word}",
            externalId=f"{marker} {word}",
            uri=f"s3://elsewhere/{marker}",
        )
    open_texts = {"description": "open", "customProperties": {}}
    environment = ids["environment"] = made(
        "serving_environments", name=f"open {folder}", externalId=f"open e {folder}", **open_texts
    )
    ids["standalone"] = made(
        "model_artifacts", name=f"open {folder}", externalId=f"open a {folder}", **open_texts
    )
    service = ids["service"] = made(
        "inference_services",
        name=f"{marker} s",
        externalId=f"{marker} s",
        registeredModelId=model,
        modelVersionId=version,
        servingEnvironmentId=environment,
        desiredState="UNDEPLOYED",
        runtime=marker,
    )
    ids["serve"] = made(
        f"inference_services/{service}/serves",
        name=f"{marker} serve",
        externalId=f"{marker} serve",
        modelVersionId=version,
    )
    experiment = ids["experiment"] = made(
        "experiments", name=f"{marker} e", externalId=f"{marker} e", owner=marker
    )
    run = ids["run"] = made(
        "experiment_runs", name=f"{marker} r", externalId=f"{marker} r", experimentId=experiment
    )
    for word, kind, value in (
        ("metric", "metric", {"value": 1.5}),
        ("parameter", "parameter", {"value": marker}),
        ("dataset", "dataset-artifact", {"source": marker, "digest": "d"}),
    ):
        ids[word] = made(
            f"experiment_runs/{run}/artifacts",
            artifactType=kind,
            name=f"{marker} {word}",
            externalId=f"{marker} {word}",
            **value,
        )


@pytest.fixture(params=MODES)
def two_users(
    request: pytest.FixtureRequest, store: Store, monkeypatch: pytest.MonkeyPatch
) -> tuple[KubeflowUser, KubeflowUser]:
    """The owner of what is secret, and the other user; neither may read what was not granted."""
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    monkeypatch.setenv(AUTHENTICATION, request.param)
    handler = lambda_handler((), kubeflow.app.PLAIN_ROUTES, ERROR_FORMAT)
    made = []
    for name, marker in (("amy", SECRET), ("ben", "OWN")):
        caller = caller_of(request.param, name)
        users.ensure(caller["iam"]["userArn"] if request.param == "iam" else name)
        user = KubeflowUser(handler, caller)
        make(user, marker, folder=name)
        made.append(user)
    return made[0], made[1]


def secrets_of(store: Store) -> dict[str, str]:
    """The items that hold the owner's texts, without what every touch changes."""
    results = {}
    for item in store.items():
        kept = {name: item[name] for name in item if name not in ("version", "updated_at")}
        text = json.dumps(kept, sort_keys=True, default=str)
        if SECRET in text:
            results[f"{item['PK']} {item['SK']}"] = text
    return results
