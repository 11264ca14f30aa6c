"""Previews a source of the model catalog before it is configured: lists the models in it and says
which of them the catalog would include. Writes nothing."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, Final, NamedTuple

from catalog_loader import configuration, entry_parsing, hugging_face, yaml_parsing
from catalog_loader.configuration import HUGGING_FACE, ConfiguredSource
from catalog_loader.field_checks import InvalidField
from catalog_loader.file_store import OutsideCatalog, files, resolve
from catalog_loader.hugging_face import NotReached
from catalog_loader.source_reading import PATH
from catalog_loader.yaml_parsing import NotYaml
from mlcore.errors import MlflowError
from mlcore.http import Request, Sent
from mlcore.http.kubeflow_responses import arguments, check_path
from mlcore.kubeflow.errors import invalid

CONFIG: Final = "config"
DATA: Final = "catalogData"
STATUSES: Final = ("all", "included", "excluded")

_PAGE_SIZE: Final = 10
_HUB_SECONDS: Final = 18.0
"""After this time no further request is sent to the Hub: API Gateway waits 30 seconds for a
response."""


class Unprocessable(MlflowError):
    """Answers HTTP 422: the source of Kubeflow's catalog to preview is invalid or unreadable."""

    error_code = "INVALID_PARAMETER_VALUE"
    http_status = 422


class PreviewRequest(NamedTuple):
    """A parsed request to preview a source of the model catalog."""

    arguments: dict[str, str]
    parts: dict[str, bytes]
    """The parts of the multipart form, by name."""


def parse(sent: Sent) -> PreviewRequest:
    """Reads the arguments and the uploaded parts of a request to preview a source of the model
    catalog. Raises InvalidParameterValue if they are malformed."""
    check_path(sent)
    return PreviewRequest(arguments(sent), _parts(sent))


def preview(preview_request: PreviewRequest, request: Request) -> dict[str, Any]:
    """Returns a page of the models of a source of Kubeflow's model catalog that the request
    describes, by name, each with whether the source includes it, and how many it does and does not.

    Raises:
        InvalidParameterValue: an argument is invalid.
        Unprocessable: the source is invalid or cannot be read.
    """
    given, parts = preview_request
    status = given.get("filterStatus", "all")
    if status not in STATUSES:
        raise invalid(f"invalid filterStatus: must be one of {', '.join(STATUSES)}")
    size = _number("pageSize", given.get("pageSize", str(_PAGE_SIZE)), 1)
    begin = _number("nextPageToken", given.get("nextPageToken", "0"), 0)
    if not parts.get(CONFIG, b"").strip():
        raise Unprocessable(f"{CONFIG} is required")
    try:
        source = configuration.source_of(CONFIG, yaml_parsing.parse(parts[CONFIG]))
        if source.type in HUGGING_FACE:
            source = hugging_face.within_organization(source)
        names = sorted(_names(source, parts.get(DATA)))
    except (InvalidField, NotYaml, NotReached, OutsideCatalog) as error:
        raise Unprocessable(str(error)) from None
    inclusions = [(name, source.includes(name)) for name in names]
    included_count = sum(included for _, included in inclusions)
    shown = [
        {"name": name, "included": included}
        for name, included in inclusions
        if status == "all" or included == (status == "included")
    ]
    items = shown[begin : begin + size]
    end = begin + len(items)
    return {
        "items": items,
        "nextPageToken": str(end) if end < len(shown) else "",
        "pageSize": size,
        "size": len(items),
        "summary": {
            "totalModels": len(names),
            "includedModels": included_count,
            "excludedModels": len(names) - included_count,
        },
    }


def _number(name: str, text: str, least: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or int(text) < least:
        raise invalid(f"invalid {name}")
    return int(text)


def _names(source: ConfiguredSource, data: bytes | None) -> list[str]:
    if source.type not in configuration.TYPES:
        raise InvalidField(f"unsupported source type: {source.type} (must be yaml or hf)")
    if source.type in HUGGING_FACE:
        hub_models = hugging_face.fetch(source, seconds=_HUB_SECONDS, trusted=False, cards=False)
        return [str(model["name"]) for model in hub_models.models]
    if data is None:
        path = source.properties.get(PATH)
        if not isinstance(path, str) or not path:
            raise InvalidField(f"missing {PATH} string property, and no {DATA}")
        read = files()
        data = read.read(resolve(path, "", read.names()))
    return [entry.name for entry in entry_parsing.models(source.key, yaml_parsing.parse(data))]


def _parts(sent: Sent) -> dict[str, bytes]:
    """Returns the parts of a form by name. Raises InvalidParameterValue."""
    content_type = sent.headers.get("content-type", "")
    if not content_type.lower().startswith("multipart/form-data"):
        raise invalid("the request must be multipart/form-data")
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = BytesParser(policy=HTTP).parsebytes(head + sent.body())
    parts: dict[str, bytes] = {}
    for part in message.iter_parts() if message.is_multipart() else ():
        name = part.get_param("name", header="content-disposition")
        if isinstance(name, str):
            payload = part.get_payload(decode=True)
            parts[name] = payload if isinstance(payload, bytes) else b""
    if not parts:
        raise invalid("the form has no parts")
    return parts
