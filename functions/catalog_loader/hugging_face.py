"""Reads sources of the Hugging Face Hub: finds the models that a source names, and converts the
Hub's data to the form of models in a YAML file.

The client library ``huggingface_hub`` is imported only when a source needs it: the import takes
half a second.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from catalog_loader import field_checks
from catalog_loader.configuration import ConfiguredSource, matches
from catalog_loader.field_checks import Check, InvalidField
from catalog_loader.hugging_face_keys import NoKey, api_key
from mlcore.ids import now_ms

ENDPOINT: Final = "https://huggingface.co"
DEFAULT_MAX_MODELS: Final = 500
"""The most models of a source without ``maxModels``."""
DEFAULT_INTERVAL: Final = "24h"
"""Interval between two reads of a source without ``syncInterval``."""

_LEAST_INTERVAL_MS: Final = 300_000
_SECONDS_OF_A_REQUEST: Final = 10.0
_REQUESTS_AT_ONCE: Final = 8
_LONGEST_README: Final = 200_000
_EXPANDED: Final = (
    *("author", "cardData", "config", "createdAt", "gated", "lastModified", "library_name"),
    *("pipeline_tag", "private", "siblings", "tags"),
)
_DURATION: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:h|m|s))+")
_PART: Final = re.compile(r"([0-9.]+)([hms])")
_client_lock: Final = threading.Lock()
"""The client of ``huggingface_hub`` is global, so only one thread may use it at a time."""
_UNITS: Final = {"h": 3_600_000, "m": 60_000, "s": 1000}


class NotReached(Exception):
    """Raised if the Hugging Face Hub does not answer as expected, or the API key cannot be read.
    The source then keeps the entries of the previous load of the catalog."""


class HubModels(NamedTuple):
    models: list[dict[str, Any]]
    """The models that were found, each in the form of a model in a YAML file."""
    missing: list[str]
    """Names of models that do not exist, or that the source's key may not read."""


class Settings(NamedTuple):
    """The parsed properties of a Hugging Face source of the model catalog."""

    key_name: str
    url: str
    most: int
    organization: str
    interval_ms: int


def settings_of(source: ConfiguredSource) -> Settings:
    """Reads the settings of one of the model catalog's Hugging Face sources from ``properties`` of
    the source. Omitted settings get their defaults, unknown ones are ignored. Raises InvalidField
    if a property has a wrong type or value."""
    read = field_checks.read_mapping(
        "properties", dict(source.properties), _PROPERTIES, others=None
    )
    return Settings(
        read.get("apiKeyEnvVar", ""),
        read.get("url") or os.environ.get("HF_ENDPOINT") or ENDPOINT,
        read.get("maxModels", DEFAULT_MAX_MODELS),
        read.get("allowedOrganization", ""),
        read.get("syncInterval") or _interval("", DEFAULT_INTERVAL),
    )


def within_organization(source: ConfiguredSource) -> ConfiguredSource:
    """Returns a Hugging Face source with its organization (``allowedOrganization``) added to each
    pattern of model names that has none. A source that has only an organization includes all of its
    models. Raises InvalidField if the source has neither an organization nor patterns of included
    models, if such a pattern names another organization, or if one with ``*`` names none."""
    bound = settings_of(source).organization
    included = [_within(pattern, bound) for pattern in source.included or (("*",) if bound else ())]
    if not included:
        raise InvalidField("includedModels: required for a source of Hugging Face")
    for pattern in included:
        organization, slash, _ = pattern.partition("/")
        if "*" in organization or (not slash and "*" in pattern):
            raise InvalidField(f"includedModels: {pattern!r} has no organization")
    excluded = [_within(pattern, bound, foreign=True) for pattern in source.excluded]
    return source._replace(included=tuple(included), excluded=tuple(excluded))


def _within(pattern: str, organization: str, *, foreign: bool = False) -> str:
    if not organization:
        return pattern
    owner, slash, _ = pattern.partition("/")
    if not slash:
        return f"{organization}/{pattern}"
    if owner.lower() != organization.lower() and not foreign:
        raise InvalidField(
            f"includedModels: {pattern!r} is not in the organization {organization!r}"
        )
    return pattern


def fetch(
    source: ConfiguredSource, *, seconds: float, trusted: bool = True, cards: bool = True
) -> HubModels:
    """Returns the models on the Hugging Face Hub that match the source's patterns. Models that the
    source excludes are contained too, but without their cards.

    Args:
        source: a result of :func:`within_organization`.
        seconds: after this time no further request is sent.
        trusted: whether the deployment's operator wrote the source. Only then is its ``url`` used:
            anybody else could probe the internal network with it.
        cards: whether the models' cards are read, with one request each.

    Raises:
        InvalidField: the source is invalid.
        NotReached: the Hub does not answer as expected, or the API key cannot be read.
    """
    settings = settings_of(source)
    if not trusted:
        settings = settings._replace(url=os.environ.get("HF_ENDPOINT") or ENDPOINT)
    try:
        key = api_key(settings.key_name)
    except NoKey as error:
        raise NotReached(str(error)) from None
    with _client_lock:
        return _fetch(source, settings.most, _Hub(settings, key, seconds), cards=cards)


def _fetch(source: ConfiguredSource, most: int, hub: _Hub, *, cards: bool) -> HubModels:
    infos: dict[str, Any] = {}
    missing = []
    for pattern in source.included:
        if len(infos) >= most:
            break
        if "*" in pattern:
            for info in hub.listed(pattern, most):
                if len(infos) < most:
                    infos.setdefault(info.id, info)
        elif (info := hub.model(pattern)) is None:
            missing.append(pattern)
        else:
            infos.setdefault(info.id, info)
    shown = [info for name, info in infos.items() if cards and source.includes(name)]
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        texts = dict(zip((info.id for info in shown), pool.map(hub.readme, shown), strict=True))
    now = now_ms()
    return HubModels([_model(info, texts.get(name), now) for name, info in infos.items()], missing)


class _Hub:
    """A client of the Hugging Face Hub for one read of a source. It sends no request after its time
    is over, and none to another host, for example after a redirect."""

    def __init__(self, settings: Settings, key: str | None, seconds: float) -> None:
        from huggingface_hub import HfApi, set_client_factory  # noqa: PLC0415 -- see above

        self._until = time.monotonic() + seconds
        self._url = settings.url.rstrip("/")
        self._host = _host_of(self._url)
        set_client_factory(self._client)
        self._api = HfApi(self._url, token=key or False, library_name="mlflow-serverless")

    def _client(self) -> Any:
        import httpx2  # noqa: PLC0415 -- the transport of huggingface_hub

        hooks: Mapping[str, list[Callable[..., Any]]] = {
            "request": [self._check_time],
            "response": [self._check_response],
        }
        return httpx2.Client(
            event_hooks=dict(hooks), follow_redirects=True, timeout=_SECONDS_OF_A_REQUEST
        )

    def _check_time(self, request: Any) -> None:
        if time.monotonic() > self._until:
            raise NotReached("the Hub did not answer in time")
        if _host_of(str(request.url)) != self._host:
            raise NotReached(f"the Hub redirects to another host: {request.url.host}")

    @staticmethod
    def _check_response(response: Any) -> None:
        """Checks each response: raises NotReached for statuses that the client library would retry
        (429 and 5xx). Waiting would delay the other sources, and the next load tries again."""
        if response.status_code == 429 or response.status_code >= 500:
            raise NotReached(f"the Hub answers {response.status_code}")

    def _call(self, ask: Callable[[], Any]) -> Any:
        """Calls ``ask`` and returns its result; None if the Hub answers that the model does not
        exist or may not be read. Raises NotReached if the Hub does not answer as expected."""
        import httpx2  # noqa: PLC0415 -- as above
        from huggingface_hub import errors  # noqa: PLC0415

        try:
            return ask()
        except (errors.RepositoryNotFoundError, errors.HFValidationError):
            return None
        except errors.HfHubHTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status in (401, 403, 404):
                return None
            raise NotReached(f"the Hub answers {status}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise NotReached(f"the Hub cannot be reached: {error}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise NotReached(f"the Hub's answer is not a model: {error!r}") from None

    def model(self, name: str) -> Any:
        return self._call(lambda: self._api.model_info(name, expand=list(_EXPANDED)))

    def listed(self, pattern: str, most: int) -> list[Any]:
        """Returns the Hub's models whose names match a pattern, at most ``most``. Raises
        NotReached."""
        author, _, rest = pattern.partition("/")
        search = rest.partition("*")[0] or None

        def ask() -> list[Any]:
            models: list[Any] = []
            listed: Iterable[Any] = self._api.list_models(
                author=author, search=search, expand=list(_EXPANDED)
            )
            for info in listed:
                if matches(pattern, info.id):
                    models.append(info)
                if len(models) >= most:
                    break
            return models

        models = self._call(ask)
        if models is None:
            raise NotReached(f"the Hub does not list the models of {author!r}")
        return list(models)

    def readme(self, info: Any) -> str | None:
        """Returns the text of the model's card, cut to ``_LONGEST_README`` characters; None if it
        has none that may be read. Raises NotReached."""
        from huggingface_hub import get_session  # noqa: PLC0415 -- as above
        from huggingface_hub.utils import (  # type: ignore[attr-defined]  # noqa: PLC0415
            build_hf_headers,
            hf_raise_for_status,
        )

        if not any(file.rfilename == "README.md" for file in info.siblings or ()):
            return None

        def ask() -> str:
            address = f"{self._url}/{info.id}/raw/main/README.md"
            answer = get_session().get(address, headers=build_hf_headers(token=self._api.token))
            hf_raise_for_status(answer)
            return str(answer.text)

        text = self._call(ask)
        return None if text is None else text[:_LONGEST_README]


def _host_of(url: str) -> tuple[str | None, int | None]:
    """Returns the host and port of a URL."""
    parts = urlsplit(url)
    return parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


# ------------------------------------------------------------------ the Hub's data


def _model(info: Any, readme: str | None, now: int) -> dict[str, Any]:
    """Returns a model of the Hub in the form of a YAML file."""
    card = info.card_data.to_dict() if info.card_data is not None else {}
    config = info.config if isinstance(info.config, dict) else {}
    tags = [str(tag) for tag in info.tags or ()]
    gated = info.gated if isinstance(info.gated, str) else str(bool(info.gated)).lower()
    custom = {
        "hf_private": str(bool(info.private)).lower(),
        "hf_gated": gated,
        "hf_tags": json.dumps(tags) if tags else None,
        "hf_architectures": json.dumps(config["architectures"])
        if isinstance(config.get("architectures"), list)
        else None,
        "hf_model_type": config.get("model_type"),
        "last_synced": str(now),
    }
    model = {
        "name": info.id,
        "description": card.get("description"),
        "readme": _without_header(readme) if readme else None,
        "provider": info.author or info.id.partition("/")[0],
        "license": _license(card, tags),
        "licenseLink": card.get("license_link"),
        "libraryName": info.library_name or card.get("library_name"),
        "language": _texts(card.get("language")),
        "tasks": _texts(info.pipeline_tag or card.get("pipeline_tag")),
        "createTimeSinceEpoch": _milliseconds(info.created_at),
        "lastUpdateTimeSinceEpoch": _milliseconds(info.last_modified),
        "customProperties": {
            name: {"metadataType": "MetadataStringValue", "string_value": value}
            for name, value in custom.items()
            if isinstance(value, str) and value
        },
        "artifacts": [{"artifactType": "model-artifact", "uri": f"hf://{info.id}"}],
    }
    return {name: value for name, value in model.items() if value not in (None, [])}


def _license(card: Mapping[str, Any], tags: Iterable[str]) -> str | None:
    """Returns the license in the card, or else in the tags; None if neither has one. A card with
    the license ``other`` has the license's name in ``license_name``."""
    license_id = card.get("license")
    if license_id == "other" and isinstance(card.get("license_name"), str):
        return str(card["license_name"])
    if isinstance(license_id, str):
        return license_id
    return next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), None)


def _texts(value: Any) -> list[str]:
    members = value if isinstance(value, list) else [value]
    return [member for member in members if isinstance(member, str) and member]


def _milliseconds(time_: datetime | None) -> str | None:
    return None if time_ is None else str(int(time_.timestamp() * 1000))


def _without_header(text: str) -> str:
    """Returns the card's text without its YAML front matter."""
    if not text.startswith("---\n"):
        return text
    _, mark, rest = text[4:].partition("\n---\n")
    return rest.lstrip("\n") if mark else text


# ------------------------------------------------------------------ properties


def _url(where: str, value: Any) -> str:
    url = field_checks.text(where, value)
    try:
        parts = urlsplit(url)
        host, _ = _host_of(url)
    except ValueError:
        host = None
    if not host or parts.scheme not in ("https", "http") or "@" in parts.netloc:
        raise InvalidField(f"{where}: must be an address of http or https")
    return url


def _most(where: str, value: Any) -> int:
    text = str(value)
    most = field_checks.number(where, int(text[:9]) if text.isdecimal() else value)
    if not 1 <= most <= 10_000:
        raise InvalidField(f"{where}: must be from 1 to 10000")
    return most


def _organization(where: str, value: Any) -> str:
    organization = field_checks.text(where, value)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}", organization):
        raise InvalidField(f"{where}: must be the name of an organization")
    return organization


def _interval(where: str, value: Any) -> int:
    """Parses a duration such as ``24h`` or ``1h30m`` to milliseconds; at least five minutes."""
    text = field_checks.text(where, value)
    if not _DURATION.fullmatch(text) or len(text) > 30:
        raise InvalidField(f"{where}: must be a duration such as 24h or 1h30m")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return max(int(seconds), _LEAST_INTERVAL_MS)


_PROPERTIES: Final[dict[str, Check]] = {
    "apiKeyEnvVar": field_checks.text,
    "url": _url,
    "maxModels": _most,
    "allowedOrganization": _organization,
    "syncInterval": _interval,
}
