"""The price list is made of MLflow's files or of LiteLLM's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlcore.prices import model_prices
from mlcore.prices.model_prices import Price
from operate import price_list as maker


def made(*arguments: object, output: Path) -> dict[str, dict[str, Price]]:
    assert maker.main([*map(str, arguments), "--output", str(output)]) == 0
    providers = json.loads(output.read_text(encoding="utf-8"))["providers"]
    return {
        provider: {model: Price(*parts) for model, parts in models.items()}
        for provider, models in providers.items()
    }


def test_of_the_installed_mlflow(tmp_path: Path) -> None:
    output = tmp_path / "made.json"
    made(output=output)
    assert output.read_text(encoding="utf-8") == model_prices.FILE.read_text(encoding="utf-8")


def test_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "catalogue"
    folder.mkdir()
    pricing = {
        "input_per_million_tokens": 3,
        "cache_write_per_million_tokens": 0.5,
        "modality": {"audio": {"input_per_million_tokens": 9}},
    }
    models = {'odd "name" é': {"mode": "chat", "pricing": pricing}, "free": {"mode": "chat"}}
    file = {"schema_version": "1.0", "models": models}
    (folder / "b.json").write_text(json.dumps(file), encoding="utf-8")
    (folder / "a.json").write_text('{"models": {}}', encoding="utf-8")
    prices = made(folder, output=tmp_path / "made.json")
    assert list(prices.items()) == [
        ("a", {}),
        ("b", {'odd "name" é': Price(3, cache_write=0.5), "free": Price()}),
    ]


def test_of_litellms_file(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    entries = {
        "sample_spec": {"litellm_provider": "one of …", "input_cost_per_token": 0},
        "gpt-x": {
            "litellm_provider": "openai",
            "input_cost_per_token": 1.5e-07,
            "output_cost_per_token": 6e-07,
            "cache_read_input_token_cost": 7.5e-08,
        },
        "azure/gpt-x": {"litellm_provider": "azure", "input_cost_per_token": 2e-06},
        "azure/eu/gpt-x": {"litellm_provider": "azure"},
        "nobody's": {},
    }
    file.write_text(json.dumps(entries), encoding="utf-8")
    assert made(file, output=tmp_path / "made.json") == {
        "azure": {"eu/gpt-x": Price(), "gpt-x": Price(2.0)},
        "openai": {"gpt-x": Price(0.15, 0.6, 0.075)},
    }


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"m": {"litellm_provider": "p", "input_cost_per_token": "1"}}']
)
def test_what_holds_no_prices(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = tmp_path / "prices.json", tmp_path / "folder"
    file.write_text(text, encoding="utf-8")
    folder.mkdir()
    for path in (file, folder, tmp_path / "none"):
        assert maker.main([str(path), "--output", str(tmp_path / "made.json")]) == 1
        assert "operate.price_list: " in capsys.readouterr().err
    assert not (tmp_path / "made.json").exists()
