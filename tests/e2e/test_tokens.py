"""Tokens of an OpenID Connect issuer, as MLflow's client sends them to the local runner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
import requests

from tests import issuer
from tests.e2e.clients import KUBEFLOW_OLD, KUBEFLOW_SCRIPT, KUBEFLOW_V1, run_script
from tests.servers import Server, start_product, stopped

mlflow = pytest.importorskip("mlflow")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
AUDIENCE = "mlflow-serverless"


class Guarded(NamedTuple):
    server: Server
    issuer: issuer.Issuer

    def token(self, email: str, **claims: Any) -> str:
        return self.issuer.token("a-key", email=email, **{"aud": AUDIENCE, **claims})

    def status(self, token: str | None, path: str = "/api/2.0/mlflow/users/current") -> int:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        answer = requests.get(self.server.url + path, headers=headers, timeout=30)
        if answer.status_code == 401:
            assert answer.headers["www-authenticate"] == 'Bearer realm="mlflow"'
        return answer.status_code


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with issuer.running() as signs:
        signs.publish("a-key", issuer.rsa_key())
        chosen = {
            "Authentication": "oidc",
            "OidcIssuer": signs.url,
            "OidcAudience": AUDIENCE,
            "OidcAdminGroup": "administrators",
        }
        arguments = [f"--parameter={name}={value}" for name, value in chosen.items()]
        folder = tmp_path_factory.mktemp("tokens")
        with stopped(start_product(folder, *arguments, POWERTOOLS_LOG_LEVEL="DEBUG")) as server:
            yield Guarded(server, signs)


def test_clients_send_tokens(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user makes and owns things; another may read them; an administrator may all."""
    client, name = mlflow.MlflowClient(guarded.server.url), f"of ada {uuid4().hex}"
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")

    def log_in(email: str, **claims: Any) -> None:
        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", guarded.token(email, **claims))

    log_in("ada@example.org")
    experiment_id = client.create_experiment(name)
    run_id = client.create_run(experiment_id).info.run_id
    client.log_metric(run_id, "m", 1.0)
    client.log_text(run_id, "hello", "greeting.txt")
    log_in("bob@example.org")
    assert client.get_run(run_id).data.metrics == {"m": 1.0}
    assert name in {experiment.name for experiment in client.search_experiments()}
    with pytest.raises(mlflow.exceptions.MlflowException, match="Permission denied"):
        client.log_metric(run_id, "m", 2.0)
    log_in("root@example.org", groups=["administrators"])
    client.delete_experiment(experiment_id)
    monkeypatch.delenv("MLFLOW_TRACKING_TOKEN")
    with pytest.raises(mlflow.exceptions.MlflowException, match="not authenticated"):
        client.get_run(run_id)


def test_kubeflows_client_sends_tokens(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What it registers is its user's; another may read it, and nobody without a token."""
    token, other = guarded.token("ada@example.org"), guarded.token("bob@example.org")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", token)
    client, name = mlflow.MlflowClient(guarded.server.url), f"registry of ada {uuid4().hex}"
    client.create_registered_model(name, tags={"team": "retention"})
    client.create_model_version(name, "s3://elsewhere/of-mlflow")
    run_script(KUBEFLOW_SCRIPT, KUBEFLOW_OLD, tmp_path, guarded.server.url, name, token)
    model_versions = client.search_model_versions(f"name = '{name} kubeflow'")
    assert [version.source for version in model_versions] == ["s3://elsewhere/moved"]
    url = f"{guarded.server.url}{KUBEFLOW_V1}/registered_model"
    query = {"name": f"{name} kubeflow"}
    statuses = []
    for login in (token, other, "x.y.z", None):
        headers = {} if login is None else {"Authorization": f"Bearer {login}"}
        answer = requests.get(url, params=query, headers=headers, timeout=30)
        statuses.append(answer.status_code)
        if answer.status_code == 200:
            path = f"{url}s/{answer.json()['id']}"
            changed = requests.patch(path, json={"owner": "o"}, headers=headers, timeout=30)
            statuses.append(changed.status_code)
    assert statuses == [200, 200, 200, 403, 401, 401]


def test_other_tokens_are_nobody(guarded: Guarded) -> None:
    assert guarded.status(guarded.token("ada@example.org")) == 200
    refused = {
        "none": None,
        "expired": guarded.token("ada@example.org", exp=1),
        "of others": guarded.token("ada@example.org", aud="somebody else"),
        "by others": guarded.issuer.token("a-key", issuer.rsa_key(), aud=AUDIENCE),
        "nonsense": "x.y.z",
    }
    assert {why: guarded.status(token) for why, token in refused.items()} == dict.fromkeys(
        refused, 401
    )
    assert guarded.status(guarded.token("ada@example.org"), "/api/2.0/mlflow/webhooks") == 403


def test_log_holds_no_token(guarded: Guarded) -> None:
    token = guarded.token("ada@example.org")
    assert guarded.status(token) == 200
    assert guarded.status(token + "x") == 401
    log = Path(guarded.server.log).read_text(errors="replace")
    assert "Bearer " not in log
    assert [part for part in token.split(".") if part in log] == []
