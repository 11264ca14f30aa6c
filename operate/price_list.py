"""``python -m operate.price_list [PATH]``: writes the price list of models that is part of the core
layer.
PATH is a folder of ``<provider>.json`` files in the form of MLflow's model catalogue (by default
that of the installed ``mlflow``), or a file in the form of LiteLLM's
``model_prices_and_context_window.json``. Models without a price stay in the list, because MLflow's
server gives them a cost of zero.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from mlcore.prices.model_prices import FILE
from mlcore.prices.setting import FIELDS

Prices = dict[str, dict[str, list[float | None]]]
"""Prices by provider, then by model. The parts of a price are in the order of FIELDS."""

LITELLM_FIELDS: Final = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr",
)
_EXAMPLE: Final = "sample_spec"
"""The entry of LiteLLM's file that documents the fields."""


class NoPriceList(Exception):
    """Raised if the source of model prices cannot be read; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the price list of models. Returns 0 when the list was written, 1 when its source
    cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m operate.price_list", description=__doc__)
    parser.add_argument("path", type=Path, nargs="?", help="folder or file with prices")
    parser.add_argument("--output", type=Path, default=FILE, help="file to write (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        prices = of_path(options.path) if options.path else of_installed()
        source = options.path.name if options.path else installed_source()
    except NoPriceList as error:
        print(f"operate.price_list: {error}", file=sys.stderr)
        return 1
    options.output.write_text(text(source, prices), encoding="utf-8")
    print(f"{options.output}: {sum(map(len, prices.values()))} models of {len(prices)} providers")
    return 0


def of_installed() -> Prices:
    """Returns the prices of models' tokens in the installed MLflow package. Raises NoPriceList if
    MLflow is not installed or has no prices."""
    mlflow = importlib.util.find_spec("mlflow")
    if mlflow is None or not mlflow.submodule_search_locations:
        raise NoPriceList("mlflow is not installed; name a folder or a file")
    return of_path(Path(mlflow.submodule_search_locations[0]) / "utils" / "model_catalog")


def installed_source() -> str:
    version = importlib.metadata.version("mlflow")
    return (
        f"the model catalogue of MLflow {version} (Apache License 2.0), whose prices go back to "
        "LiteLLM's table (MIT License)"
    )


def of_path(path: Path) -> Prices:
    """Returns the prices of models that a folder or a file contains. Raises NoPriceList if it
    cannot be read or has another form, or if the folder contains no files of prices."""
    try:
        if not path.is_dir():
            return of_litellm(json.loads(path.read_bytes()))
        files = sorted(path.glob("*.json"), key=lambda file: file.stem)
        prices = {file.stem: _of_catalogue(json.loads(file.read_bytes())) for file in files}
    except (OSError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise NoPriceList(f"{path} holds no prices: {error!r}") from error
    if not prices:
        raise NoPriceList(f"{path} holds no files of prices")
    return prices


def of_litellm(entries: Mapping[str, Mapping[str, Any]]) -> Prices:
    """Returns the prices in the entries of LiteLLM's list of models, by model provider and model.
    Removes the provider from model names, and converts prices per token to prices per million
    tokens."""
    prices: Prices = {}
    for name, entry in sorted(entries.items()):
        provider = entry.get("litellm_provider")
        if name == _EXAMPLE or not isinstance(provider, str):
            continue
        parts = [_of_a_million(entry.get(field)) for field in LITELLM_FIELDS]
        prices.setdefault(provider, {}).setdefault(name.removeprefix(f"{provider}/"), _short(parts))
    return dict(sorted(prices.items()))


def text(source: str, prices: Prices) -> str:
    """Returns the price list as JSON, with one line for each model, so that a diff shows which
    models changed."""
    lines = [f'{{"source":{_compact(source)},', '"providers":{']
    for provider, models in prices.items():
        named = [f"{_compact(name)}:{_compact(parts)}" for name, parts in models.items()]
        lines.append(f"{_compact(provider)}:{{")
        lines += [f"{line}," for line in named[:-1]] + named[-1:]
        lines.append("},")
    if prices:
        lines[-1] = "}"
    return "\n".join([*lines, "}}", ""])


def _of_catalogue(file: Mapping[str, Any]) -> dict[str, list[float | None]]:
    prices = {}
    for name, entry in file["models"].items():
        pricing = entry.get("pricing") or {}
        prices[name] = _short([_number(pricing.get(field)) for field in FIELDS])
    return prices


def _of_a_million(of_one: Any) -> float | None:
    number = _number(of_one)
    return None if number is None else float(Decimal(str(number)) * 1_000_000)


def _number(value: Any) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError(f"{value!r} is no price")
    return value


def _short(parts: list[float | None]) -> list[float | None]:
    while parts and parts[-1] is None:
        parts.pop()
    return parts


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    sys.exit(main())
