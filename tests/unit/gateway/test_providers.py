"""The lists of providers and models are those of the installed MLflow."""

from __future__ import annotations

from typing import Any

import pytest

from gateway import messages as m
from gateway import providers
from mlcore.http import Request
from operate import model_list

stock: Any = pytest.importorskip("mlflow.utils.providers")
REQUEST = Request({}, "default", "r")


@pytest.fixture(autouse=True)
def bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock asks the internet for newer models otherwise."""
    monkeypatch.setenv("MLFLOW_MODEL_CATALOG_URI", "")


def test_the_files_are_made_of_the_installed_mlflow() -> None:
    made = model_list.models_text(stock._list_provider_names(), stock)
    assert made == providers.MODELS_FILE.read_text(encoding="utf-8"), "run `make models`"
    shipped = providers.PROVIDERS_FILE.read_text(encoding="utf-8")
    assert model_list.providers_text(stock) == shipped, "run `make models`"


def test_providers() -> None:
    listed = providers.list_providers(m.EmptyRequest(), REQUEST)["providers"]
    assert listed == sorted(stock.get_all_providers())
    for name in (*listed, "bedrock_converse", "amazon-bedrock", "Azure", "ours"):
        expected = {
            **stock.get_provider_config_response(name),
            "env_credentials_available": False,
        }
        assert providers.provider_config(m.ProviderRequest(provider=name), REQUEST) == expected


def test_models() -> None:
    everything = providers.list_models(m.ProviderRequest(), REQUEST)["models"]
    assert everything == stock.get_models()
    for name in ("openai", "vertex_ai", "bedrock_converse", "nobody"):
        models = providers.list_models(m.ProviderRequest(provider=name), REQUEST)["models"]
        assert models == stock.get_models(name), name
