"""Sources of Hugging Face, with its own client against a server that answers as its Hub does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore import secrets
from tests.contract.catalog_api import CatalogApi, form
from tests.contract.conftest import Store
from tests.contract.hub import KEY, Hub, serving

SOURCE = "catalogs: [{id: hub, type: hf, %s}]"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving() as hub:
        card = {"license": "apache-2.0", "language": ["en", "de"], "description": "Small."}
        hub.add(
            "org/alpha",
            "---\nlicense: apache-2.0\n---\n# Alpha\n",
            cardData=card,
            config={"architectures": ["AlphaForCausalLM"], "model_type": "alpha"},
            library_name="transformers",
            pipeline_tag="text-generation",
            gated="manual",
        )
        for at in range(7):
            hub.add(f"org/beta-{at}")
        hub.add("org/hidden", private=True)
        hub.add("other/gamma")
        yield hub


@pytest.fixture
def api(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub) -> CatalogApi:
    monkeypatch.setenv("CATALOG_FOLDER", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    return CatalogApi(tmp_path)


def _status(api: CatalogApi) -> tuple[str, str]:
    (source,) = api.get("sources")["items"]
    return source["status"], source.get("error", "")


def test_what_the_hub_says_of_a_model(api: CatalogApi) -> None:
    api.write(sources=SOURCE % "includedModels: [org/alpha]")
    assert api.load()["errors"] == 0
    model = api.get("sources/hub/models/org/alpha")
    custom = {name: value["string_value"] for name, value in model.pop("customProperties").items()}
    assert custom.pop("last_synced").isdecimal()
    assert custom == {
        "hf_private": "false",
        "hf_gated": "manual",
        "hf_tags": '["pytorch", "license:mit"]',
        "hf_architectures": '["AlphaForCausalLM"]',
        "hf_model_type": "alpha",
    }
    assert model.pop("id").isdecimal()
    assert model == {
        "name": "org/alpha",
        "source_id": "hub",
        "description": "Small.",
        "readme": "# Alpha\n",
        "provider": "org",
        "license": "Apache 2.0",
        "libraryName": "transformers",
        "language": ["en", "de"],
        "tasks": ["text-generation"],
        "createTimeSinceEpoch": "1709287200000",
        "lastUpdateTimeSinceEpoch": "1740823200000",
    }
    (artifact,) = api.get("sources/hub/models/org/alpha/artifacts")["items"]
    assert (artifact["artifactType"], artifact["uri"]) == ("model-artifact", "hf://org/alpha")


def test_which_models_a_source_names(api: CatalogApi) -> None:
    betas = [f"org/beta-{at}" for at in range(7)]
    for source, expected in (
        ("includedModels: [org/*]", ["org/alpha", *betas]),
        ("includedModels: [org/beta-*], excludedModels: ['*-3']", [*betas[:3], *betas[4:]]),
        ("includedModels: ['org/*A-5', other/gamma]", ["org/beta-5", "other/gamma"]),
        (
            "includedModels: [beta-1, alpha], properties: {allowedOrganization: org}",
            ["org/alpha", betas[1]],
        ),
        ("properties: {allowedOrganization: other}", ["other/gamma"]),
        ("includedModels: [org/*], properties: {maxModels: 4}", ["org/alpha", *betas[:3]]),
    ):
        api.write(sources=SOURCE % source)
        assert api.load()["errors"] == 0, source
        assert api.names("models") == expected, source
    for source in (
        "labels: [x]",
        "includedModels: ['*']",
        "includedModels: ['o*/alpha']",
        "includedModels: [other/gamma], properties: {allowedOrganization: org}",
        "includedModels: [org/alpha], properties: {url: 'file:///etc'}",
        "includedModels: [org/alpha], properties: {maxModels: 0}",
        "includedModels: [org/alpha], properties: {syncInterval: daily}",
        "includedModels: [org/alpha], properties: {apiKeyEnvVar: AWS_SECRET_ACCESS_KEY}",
        "includedModels: [org/alpha], properties: {apiKeyEnvVar: NOT_THERE}",
    ):
        api.write(sources=SOURCE % source)
        assert api.load()["errors"] == 1, source
        assert _status(api)[0] == "error"


def test_a_key_from_the_environment_or_the_secret(
    api: CatalogApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.write(sources=SOURCE % "includedModels: [org/alpha, org/hidden]")
    api.load()
    assert _status(api) == ("partially-available", "the Hub does not show: org/hidden")
    assert api.names("models") == ["org/alpha"]
    monkeypatch.setenv("HF_API_KEY", KEY)
    api.ask("POST", "sources/reload")
    assert _status(api) == ("available", "")
    assert api.names("models") == ["org/alpha", "org/hidden"]

    class Client:
        text = KEY

        def get_secret_value(self, **parameters: str) -> dict[str, str]:
            assert parameters == {"SecretId": "arn:secret"}
            return {"SecretString": self.text}

    monkeypatch.delenv("HF_API_KEY")
    monkeypatch.setenv("CATALOG_SECRET", "arn:secret")
    monkeypatch.setattr(secrets, "create_client", lambda _: Client())
    api.ask("POST", "sources/reload")
    assert api.names("models") == ["org/alpha", "org/hidden"]
    Client.text = f'{{"TEAM": "{KEY}"}}'
    own = "includedModels: [org/hidden], properties: {apiKeyEnvVar: TEAM}"
    api.write(sources=SOURCE % own)
    api.load()
    assert api.names("models") == ["org/hidden"]


def test_a_hub_that_does_not_answer_leaves_what_there_was(api: CatalogApi, hub: Hub) -> None:
    api.write(sources=SOURCE % "includedModels: [org/*]")
    api.load()
    before = api.get("models")["items"]
    for status in (429, 500, 503):
        hub.status = status
        count = len(hub.asked)
        api.ask("POST", "sources/reload")
        assert _status(api) == ("error", f"the Hub answers {status}")
        assert len(hub.asked) == count + 1, "nobody waits for it"
    hub.status = 200
    hub.next_host = "http://127.0.0.1:9"
    api.ask("POST", "sources/reload")
    assert "another host" in _status(api)[1]
    assert api.get("models")["items"] == before


def test_it_is_asked_again_when_it_is_due(
    api: CatalogApi, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_800_000_000_000]
    for module in ("loading", "hugging_face"):
        monkeypatch.setattr(f"catalog_loader.{module}.now_ms", lambda: now[0])
    api.write(sources=SOURCE % "includedModels: [org/alpha], properties: {syncInterval: 1h30m}")

    def load() -> int:
        before = len(hub.asked)
        api.load()
        return len(hub.asked) - before

    assert load() == 2
    now[0] += 89 * 60_000
    assert load() == 0
    api.write(lab="models: []")
    assert load() == 0, "another file has changed"
    assert api.names("models") == ["org/alpha"]
    now[0] += 60_000
    assert load() == 2
    hub.status = 500
    now[0] += 90 * 60_000
    assert (load(), load()) == (1, 0)
    hub.status = 200
    now[0] += 60 * 60_000
    assert load() == 2
    assert _status(api)[0] == "available"


def test_a_preview_asks_the_hub_of_the_deployment(api: CatalogApi, hub: Hub) -> None:
    def preview(config: str, **query: Any) -> Any:
        return api.ask("POST", "sources/preview", form(config), form="b", **query)

    config = "type: huggingface\nincludedModels: [org/*]\nexcludedModels: ['*-1']"
    inside = f"{config}\nproperties: {{url: 'http://169.254.169.254'}}"
    for source in (config, inside):
        shown = preview(source, filterStatus="excluded")
        assert shown.body["items"] == [{"name": "org/beta-1", "included": False}]
        assert shown.body["summary"]["totalModels"] == 8
    assert not any("README" in path for path in hub.asked)
    hub.status = 500
    assert preview(config).status == 422
    assert preview("type: hf").status == 422
    digits = f"{config}\nproperties: {{maxModels: '{'9' * 5000}'}}"
    assert "maxModels" in preview(digits).body["message"]
    assert api.get("models")["items"] == []
