"""Parses the request that registers a version of a skill: a JSON body that names a source, or a
multipart body with metadata and the archive of the skill's folder."""

from __future__ import annotations

from typing import Any, Final, Self

from mlcore import errors
from mlcore.http import Sent, SentMessage
from mlcore.limits import skills as limits
from mlcore.wire import json_body as j
from mlcore.wire import multipart
from mlcore.wire.json_body import JsonField
from mlcore.wire.json_text import parse_json_bytes, parse_json_text

ARCHIVE_SLACK: Final = 1024 * 1024
"""Bytes by which an archive may exceed the limit of its content."""
_BODY_SLACK: Final = 2 * 1024 * 1024
"""Bytes by which a body may exceed the limit of its archive."""
_METADATA_BYTES: Final = 1024 * 1024

_OPTIONAL: Final = JsonField(j.optional(j.text))
_METADATA: Final = j.object_of(
    {
        "name": _OPTIONAL,
        "organization": JsonField(j.text),
        "source_type": _OPTIONAL,
        "source": _OPTIONAL,
        "ref": _OPTIONAL,
        "subpath": _OPTIONAL,
        "digest": _OPTIONAL,
        "status": JsonField(j.text),
    },
    forbid=True,
    misfit="Input should be a valid dictionary or instance of CreateSkillVersionRequest",
)


class RegisterSkillVersion(SentMessage):
    """A parsed request to register a version of a skill. ``organization`` and ``name`` are those in
    the path."""

    organization: str
    name: str
    source_type: Any
    source: Any
    ref: Any
    subpath: Any
    digest: Any
    status: str = "active"
    archive: Any
    """The uploaded archive; None for a JSON body."""

    @classmethod
    def of_sent(cls, sent: Sent) -> Self:
        """Parses a request to register a version of a skill. Raises InvalidParameterValue,
        BadRequest, ContentTooLarge."""
        parameters = sent.parameters
        misfits = j.Misfits()
        if parameters.get("name", "").startswith("@"):
            message = "String should match pattern '^[^@/][^/]*$'"
            misfits.note(("path", "name"), message, "string_pattern_mismatch", parameters["name"])
        misfits.check()
        content_type = sent.headers.get("content-type", "")
        kind = content_type.partition(";")[0].lower()
        if kind == "application/json":
            return cls(**_of_json(sent, parameters.get("organization", ""), parameters["name"]))
        if kind != "multipart/form-data":
            raise errors.InvalidParameterValue(
                "Skill registration requires an application/json or multipart/form-data request."
            )
        return cls(**_of_parts(sent, parameters.get("organization", ""), parameters["name"]))


def _of_json(sent: Sent, organization: str, name: str) -> dict[str, Any]:
    try:
        metadata = parse_json_text(sent.text(), lone_surrogates=True)
    except ValueError:
        raise errors.InvalidParameterValue(
            "The request body must contain a valid JSON object."
        ) from None
    return _read(metadata, organization, name)


def _of_parts(sent: Sent, organization: str, name: str) -> dict[str, Any]:
    most = limits.max_content_bytes() + ARCHIVE_SLACK + _BODY_SLACK
    length = sent.headers.get("content-length", "")
    too_long = length.isdecimal() and len(length) < 20 and int(length) > most
    if too_long or len(body := sent.body()) > most:
        raise errors.ContentTooLarge(
            f"The multipart request body exceeds the maximum allowed size of {most} bytes."
        )
    if sent.body_is_incomplete():
        raise errors.ContentTooLarge(
            "The archive did not arrive: it is larger than API Gateway and Lambda pass on, about "
            "4.4 MB. Register the skill from a git, oci, or zip source."
        )
    parts = multipart.parse(sent.headers["content-type"], body, most_files=2, most_fields=1)
    by_name = {part.name: part for part in parts}
    if len(parts) != 2 or by_name.keys() != {"metadata", "content"}:
        raise errors.InvalidParameterValue(
            "Multipart registration requires exactly one 'metadata' part and one 'content' part."
        )
    metadata, content = by_name["metadata"], by_name["content"]
    if len(metadata.content) > _METADATA_BYTES:
        raise errors.ContentTooLarge(
            "The registration metadata exceeds the maximum allowed size of "
            f"{_METADATA_BYTES} bytes."
        )
    if not content.is_file:
        raise errors.InvalidParameterValue("Multipart registration requires a 'content' file part.")
    try:
        fields = parse_json_bytes(metadata.content, lone_surrogates=True)
    except ValueError:
        raise errors.InvalidParameterValue(
            "The 'metadata' part must contain a valid JSON object."
        ) from None
    return {**_read(fields, organization, name), "archive": content.content}


def _read(metadata: Any, organization: str, name: str) -> dict[str, Any]:
    misfits = j.Misfits(listed=True)
    fields = _METADATA(metadata, (), misfits)
    if misfits.texts:
        count = len(misfits.texts)
        raise errors.InvalidParameterValue(
            f"Invalid registration metadata: {count} validation error{'s' if count > 1 else ''} "
            f"for CreateSkillVersionRequest\n{misfits.written_out()}"
        )
    for field, expected in (("name", name), ("organization", organization)):
        if field in fields and fields[field] != expected:
            raise errors.InvalidParameterValue(
                f"Registration metadata '{field}' must match the path identity."
            )
    return {**fields, "organization": organization, "name": name}
