"""The gateway's secrets, models and endpoints, and what is refused of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.calls import name
from tests.differential.gateway_calls import (
    E1,
    FALLBACK,
    MISSING,
    PRIMARY,
    definition,
    delete,
    endpoint,
    model,
    post,
    read,
    secret,
    tidy,
)
from tests.differential.pair import Pair
from tests.differential.rest import Ref

__all__ = ["tidy"]

pytestmark = pytest.mark.e2e


def test_secrets(both: Pair) -> None:
    same = name()
    both.send_all(
        [
            secret(provider="openai", auth_config={"api_base": " https://8.8.8.8/v1 "}),
            read("secrets/get", secret_id=Ref("secret")),
            post("secrets/update", secret_id=Ref("secret"), auth_config={"api_base": " "}),
            post("secrets/update", secret_id=Ref("secret"), auth_config={"region": "x"}),
            post(
                "secrets/update",
                secret_id=Ref("secret"),
                secret_value={"api_key": "0123456789", "short": "1234567"},
                updated_by="you",
            ),
            post("secrets/update", secret_id=Ref("secret")),
            secret("named", secret_name=same, created_by="me"),
            secret("named", secret_name=same),
            read("secrets/list"),
            read("secrets/list", provider="openai"),
            read("secrets/list", provider="nobody"),
            delete("secrets/delete", secret_id=Ref("named")),
            delete("secrets/delete", secret_id=Ref("named")),
            read("secrets/get", secret_id=Ref("named")),
            post("secrets/update", secret_id="s-0"),
            read("secrets/get"),
            read("secrets/get", secret_name=same),
        ]
    )


REFUSED_SECRETS: list[dict[str, Any]] = [
    *({"secret_name": value} for value in ("", None, 5, ["x"])),
    *({"secret_value": value} for value in ({}, "x", 5, {"a": 5}, {"a": None}, ["x"])),
    *({"provider": value} for value in ("", None, 5)),
    *({"auth_config": {"api_base": value}} for value in ("", "http://8.8.8.8", "ftp://x", "x")),
    *({"auth_config": {"api_base": f"https://{host}/v1"}} for host in ("127.0.0.1", "10.0.0.1")),
    *({"auth_config": {"api_base": f"https://{host}"}} for host in ("u:p@8.8.8.8", "1.1", "")),
    *({"auth_config": {key: "x"}} for key in ("base_url", "fallbacks", "model_list", "other")),
    *({"secret_value": {key: "x"}} for key in ("api_base", "base_url", "other")),
]


def test_secrets_that_are_refused(both: Pair) -> None:
    both.send_all(secret("any", **fields) for fields in REFUSED_SECRETS)


def test_model_definitions(both: Pair) -> None:
    same, other = name(), name()
    this: dict[str, Any] = {"model_definition_id": Ref("definition")}
    both.send_all(
        [
            secret(),
            secret("second"),
            definition(name=same, created_by="me"),
            definition("second definition", name=same),
            definition("second definition", name=other, provider="anthropic"),
            definition(secret_id="s-0"),
            *(definition(**{field: ""}) for field in ("name", "provider", "model_name")),
            read("model-definitions/get", **this),
            read("model-definitions/list"),
            read("model-definitions/list", provider="anthropic"),
            read("model-definitions/list", secret_id=Ref("secret")),
            read("model-definitions/list", secret_id="s-0"),
            post("model-definitions/update", **this, name=other),
            post("model-definitions/update", **this, name=same, updated_by="you"),
            post("model-definitions/update", **this, secret_id="s-0"),
            post("model-definitions/update", **this, secret_id=Ref("second"), model_name="gpt-5"),
            post("model-definitions/update", model_definition_id="d-0", name="x"),
            delete("secrets/delete", secret_id=Ref("second")),
            read("model-definitions/get", **this),
            delete("model-definitions/delete", **this),
            delete("model-definitions/delete", **this),
            read("model-definitions/get", **this),
        ]
    )


def test_endpoints(both: Pair) -> None:
    same = name()
    split: dict[str, Any] = {"routing_strategy": "REQUEST_BASED_TRAFFIC_SPLIT"}
    both.send_all(
        [
            secret(),
            definition(),
            definition("other", provider="anthropic"),
            endpoint(
                **split,
                name=same,
                usage_tracking=True,
                created_by="me",
                model_configs=[model(weight=0.1), model(FALLBACK, "other", fallback_order=0)],
                fallback_config={"strategy": "SEQUENTIAL", "max_attempts": 2},
            ),
            endpoint("twin", name=same),
            endpoint("plain"),
            endpoint("zero", experiment_id="0"),
            read("endpoints/get", **E1),
            read("endpoints/get", name=same),
            read("endpoints/get", name=same, **E1),
            read("endpoints/get", name="nobody"),
            read("endpoints/get"),
            read("endpoints/list"),
            read("endpoints/list", provider="anthropic"),
            read("endpoints/list", secret_id="s-0"),
            delete("model-definitions/delete", model_definition_id=Ref("other")),
            post("endpoints/update", **E1, fallback_config={"max_attempts": 0}),
            post("endpoints/update", **E1, fallback_config={"strategy": 0}, updated_by="you"),
            post("endpoints/update", **E1, model_configs=[model(FALLBACK), model()]),
            post("endpoints/update", endpoint_id=Ref("plain"), name=same),
            post("endpoints/update", endpoint_id=Ref("plain"), usage_tracking=True),
            post("endpoints/update", endpoint_id=Ref("plain"), name="a b"),
            post("endpoints/update", **E1, model_configs=[model(), model()]),
            post(
                "endpoints/update",
                **E1,
                model_configs=[{"model_definition_id": "d-0", "linkage_type": PRIMARY}],
            ),
            *(
                post("endpoints/update", **E1, experiment_id=experiment_id)
                for experiment_id in ("77777", "x", "")
            ),
            post("endpoints/update", **MISSING),
            delete("model-definitions/delete", model_definition_id=Ref("other")),
            delete("endpoints/delete", **E1),
            delete("endpoints/delete", **E1),
            read("endpoints/get", **E1),
        ]
    )


REFUSED_ENDPOINTS: list[dict[str, Any]] = [
    *({"name": value} for value in ("", "a b", "a/b", "é", 5, None)),
    *({"model_configs": value} for value in ([], None, "x", {})),
    *({"model_configs": [model(linkage)]} for linkage in (None, 0, 1, 2, 3, "x", "2", "FALLBACK")),
    {"model_configs": [model(), model()]},
    {"model_configs": [{"model_definition_id": "d-0", "linkage_type": PRIMARY}]},
    {"model_configs": [{"linkage_type": PRIMARY}]},
    *({"model_configs": [model(weight=value)]} for value in (0, -1, 1e-9, 123456.789, 16777217)),
    *({"model_configs": [model(weight=value)]} for value in (0.3, 1 / 3, "0.25", "x", True)),
    *({"experiment_id": value} for value in ("", "x", "77777", "0")),
    *({"routing_strategy": value} for value in (0, 1, 5, "x", None)),
    *({"fallback_config": value} for value in ({}, None, {"strategy": "x"}, {"max_attempts": "2"})),
]


def test_endpoints_that_are_refused(both: Pair) -> None:
    both.send_all([secret(), definition()])
    both.send_all(endpoint("any", **fields) for fields in REFUSED_ENDPOINTS)


def test_models_of_endpoints(both: Pair) -> None:
    detach: dict[str, Any] = {**E1, "model_definition_id": Ref("definition")}
    both.send_all(
        [
            secret(),
            definition(),
            definition("other"),
            endpoint(),
            post("endpoints/models/attach", **E1, model_config=model()),
            post("endpoints/models/attach", **E1, model_config=model(FALLBACK), created_by="q"),
            post("endpoints/models/attach", **E1, model_config=model(saved="other", weight=0.7)),
            post("endpoints/models/attach", **E1, model_config={}),
            post("endpoints/models/attach", **E1),
            post("endpoints/models/attach", **MISSING, model_config=model()),
            post(
                "endpoints/models/attach",
                **E1,
                model_config={"model_definition_id": "d-0", "linkage_type": 1},
            ),
            post("endpoints/models/detach", **detach),
            read("endpoints/get", **E1),
            post("endpoints/models/detach", **detach),
            post("endpoints/models/detach", **detach),
            post("endpoints/models/detach", **{**detach, **MISSING}),
            post("endpoints/models/detach", **{**detach, "model_definition_id": Ref("other")}),
            read("endpoints/get", **E1),
            read("endpoints/list"),
            delete("endpoints/delete", **E1),
        ]
    )


def test_tags_and_bindings(both: Pair) -> None:
    bound: dict[str, Any] = {**E1, "resource_type": "scorer", "resource_id": "r1"}
    both.send_all(
        [
            secret(),
            definition(),
            endpoint(),
            post("endpoints/set-tag", **E1, key="a", value="1"),
            post("endpoints/set-tag", **E1, key="a", value="2"),
            post("endpoints/set-tag", **E1, key="b"),
            post("endpoints/set-tag", **E1, key=""),
            post("endpoints/set-tag", **E1, value="x"),
            post("endpoints/set-tag", **MISSING, key="b"),
            read("endpoints/get", **E1),
            delete("endpoints/delete-tag", **E1, key="a"),
            delete("endpoints/delete-tag", **E1, key="a"),
            delete("endpoints/delete-tag", **MISSING, key="a"),
            read("endpoints/get", **E1),
            post("endpoints/bindings/create", **bound, created_by="me"),
            post("endpoints/bindings/create", **bound),
            post("endpoints/bindings/create", **{**bound, "resource_type": "x"}),
            post("endpoints/bindings/create", **{**bound, **MISSING}),
            *(post("endpoints/bindings/create", **{**bound, field: ""}) for field in bound),
            read("endpoints/bindings/list"),
            read("endpoints/bindings/list", **E1),
            read("endpoints/bindings/list", **MISSING),
            read("endpoints/bindings/list", resource_id="r1"),
            read("endpoints/bindings/list", resource_type="other"),
            delete("endpoints/bindings/delete", **{**bound, "resource_type": "x"}),
            delete("endpoints/bindings/delete", **bound),
            delete("endpoints/bindings/delete", **bound),
        ]
    )
