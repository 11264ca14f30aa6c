"""What a source would show, before anybody configures it: nothing is written."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, Final, NamedTuple

from catalog_loader import configuration, contents, hugging_face, yaml_text
from catalog_loader.configuration import HUGGING_FACE, Source
from catalog_loader.fields import Wrong
from catalog_loader.files import OutsideCatalog, files, find
from catalog_loader.hugging_face import NotReached
from catalog_loader.reading import PATH
from catalog_loader.yaml_text import NotYaml
from mlcore.errors import MlflowError
from mlcore.http import Request, Sent
from mlcore.http.kubeflow import arguments, check_path
from mlcore.kubeflow.errors import bad

CONFIG: Final = "config"
DATA: Final = "catalogData"
STATUSES: Final = ("all", "included", "excluded")

_PAGE_SIZE: Final = 10
_HUB_SECONDS: Final = 18.0
"""For which the Hub is asked: API Gateway waits half a minute."""


class Unprocessable(MlflowError):
    """422: what was sent is no source."""

    error_code = "INVALID_PARAMETER_VALUE"
    http_status = 422


class Asked(NamedTuple):
    """A parsed request for a preview."""

    arguments: dict[str, str]
    parts: dict[str, bytes]
    """Of the form, by name."""


def parse(sent: Sent) -> Asked:
    """Raises InvalidParameterValue."""
    check_path(sent)
    return Asked(arguments(sent), _parts(sent))


def preview(asked: Asked, request: Request) -> dict[str, Any]:
    """The models of a source by name, with whether it includes them, and how many there are.

    Raises:
        InvalidParameterValue: an argument is wrong.
        Unprocessable: the source is.
    """
    given, parts = asked
    status = given.get("filterStatus", "all")
    if status not in STATUSES:
        raise bad(f"invalid filterStatus: must be one of {', '.join(STATUSES)}")
    size = _number("pageSize", given.get("pageSize", str(_PAGE_SIZE)), 1)
    begin = _number("nextPageToken", given.get("nextPageToken", "0"), 0)
    if not parts.get(CONFIG, b"").strip():
        raise Unprocessable(f"{CONFIG} is required")
    try:
        source = configuration.source_of(CONFIG, yaml_text.parse(parts[CONFIG]))
        if source.type in HUGGING_FACE:
            source = hugging_face.within_organization(source)
        names = sorted(_names(source, parts.get(DATA)))
    except (Wrong, NotYaml, NotReached, OutsideCatalog) as error:
        raise Unprocessable(str(error)) from None
    marked = [(name, source.includes(name)) for name in names]
    included = sum(each for _, each in marked)
    shown = [
        {"name": name, "included": each}
        for name, each in marked
        if status == "all" or each == (status == "included")
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
            "includedModels": included,
            "excludedModels": len(names) - included,
        },
    }


def _number(name: str, text: str, least: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or int(text) < least:
        raise bad(f"invalid {name}")
    return int(text)


def _names(source: Source, data: bytes | None) -> list[str]:
    if source.type not in configuration.TYPES:
        raise Wrong(f"unsupported source type: {source.type} (must be yaml or hf)")
    if source.type in HUGGING_FACE:
        found = hugging_face.fetch(source, seconds=_HUB_SECONDS, ours=False, cards=False)
        return [str(model["name"]) for model in found.models]
    if data is None:
        path = source.properties.get(PATH)
        if not isinstance(path, str) or not path:
            raise Wrong(f"missing {PATH} string property, and no {DATA}")
        read = files()
        data = read.read(find(path, "", read.names()))
    return [entry.name for entry in contents.models(source.key, yaml_text.parse(data))]


def _parts(sent: Sent) -> dict[str, bytes]:
    """The parts of a form by name. Raises InvalidParameterValue."""
    content_type = sent.headers.get("content-type", "")
    if not content_type.lower().startswith("multipart/form-data"):
        raise bad("the request must be multipart/form-data")
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = BytesParser(policy=HTTP).parsebytes(head + sent.body())
    found: dict[str, bytes] = {}
    for part in message.iter_parts() if message.is_multipart() else ():
        name = part.get_param("name", header="content-disposition")
        if isinstance(name, str):
            payload = part.get_payload(decode=True)
            found[name] = payload if isinstance(payload, bytes) else b""
    if not found:
        raise bad("the form has no parts")
    return found
