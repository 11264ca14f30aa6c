"""Every model of the shipped price list costs what it costs on stock MLflow."""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator

import pytest

from mlcore.prices.model_call_cost import cost
from mlcore.prices.model_prices import FILE
from operate import price_list as maker
from tests.differential.stock import SEED

stock = pytest.importorskip("mlflow.tracing.utils")
catalogue = importlib.import_module("mlflow.utils.providers")

TOKENS = (0, 1, 3, 7, 1000, 4096, 123_457)
OPTIONAL = (
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation_input_tokens_above_1hr",
)


@pytest.fixture(scope="module", autouse=True)
def bundled_prices() -> Iterator[None]:
    """Stock asks the internet for newer prices otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_MODEL_CATALOG_URI", "")
        yield


def test_the_list_is_that_of_the_installed_mlflow() -> None:
    made = maker.text(maker.installed_source(), maker.of_installed())
    assert made == FILE.read_text(encoding="utf-8"), "run `make prices`"


def test_every_model_by_every_name() -> None:
    rng = random.Random(SEED)
    known = 0
    for provider in catalogue._list_provider_names():
        for model in catalogue._load_bundled_provider(provider):
            usage = {"input_tokens": rng.choice(TOKENS), "output_tokens": rng.choice(TOKENS)}
            usage |= {key: rng.choice(TOKENS) for key in OPTIONAL if rng.random() < 0.5}
            name = rng.choice((model, f"{provider}/{model}", model.upper()))
            by = rng.choice((provider, provider.upper(), "nobody", "", None))
            expected = stock.calculate_cost_by_model_and_token_usage(name, usage, by)
            assert cost(name, usage, by) == expected, (name, usage, by)
            known += expected is not None
    assert known > 2000
