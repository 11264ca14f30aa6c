"""``python -m operate.model_list``: writes the gateway's lists of models and providers from the
installed ``mlflow``: the abilities and prices of each model, and the credential fields of each
provider."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
from typing import Any

from gateway.providers import CAPABILITIES, LIMITS, MODELS_FILE, PROVIDERS_FILE
from operate.price_list import installed_source


def main() -> int:
    warnings.simplefilter("ignore")
    from mlflow.utils import providers  # noqa: PLC0415 -- the product does not have it

    stock: Any = providers
    MODELS_FILE.write_text(models_text(stock._list_provider_names(), stock), encoding="utf-8")
    PROVIDERS_FILE.write_text(providers_text(stock), encoding="utf-8")
    print(f"{MODELS_FILE}\n{PROVIDERS_FILE}")
    return 0


def models_text(names: Iterable[str], stock: Any) -> str:
    """Returns the text of the file of the gateway's models: JSON with one line for each model, so
    that a diff shows which models changed."""
    lines = [f'{{"source":{_compact(installed_source())},"providers":{{']
    for provider in names:
        models = stock._load_bundled_provider(provider)
        named = [f"{_compact(name)}:{_compact(_short(info))}" for name, info in models.items()]
        lines += [f"{_compact(provider)}:{{", *[f"{line}," for line in named[:-1]], *named[-1:]]
        lines.append("},")
    lines[-1] = "}"
    return "\n".join([*lines, "}}", ""])


def providers_text(stock: Any) -> str:
    """Returns the text of the file of the gateway's providers: JSON with the credential fields of
    each provider that needs more than an API key."""
    responses = {
        name: stock.get_provider_config_response(name) for name in stock._PROVIDER_AUTH_MODES
    }
    return json.dumps(responses, indent=1, sort_keys=True) + "\n"


def _short(info: dict[str, Any]) -> list[Any]:
    """Returns a model's entry: mode, abilities as bits, limits, prices per token, modalities and
    two dates. Missing values at the end are dropped."""
    bits = sum(1 << at for at, name in enumerate(CAPABILITIES) if info.get(name))
    values = [info.get("mode"), bits, *(info.get(name) for name in LIMITS)]
    while values and values[-1] is None:
        values.pop()
    return values


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    sys.exit(main())
