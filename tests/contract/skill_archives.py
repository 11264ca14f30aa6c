"""Archives of skills' folders, good and hostile, and multipart bodies that carry them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterable
from typing import Any, Final

BOUNDARY: Final = "b0undary"
MULTIPART: Final = f"multipart/form-data; boundary={BOUNDARY}"

FILES: Final = {
    "SKILL.md": b"---\nname: up\ndescription: d\n---\nbody\n",
    "scripts/run.sh": b"echo hi\n",
}
DIGEST: Final = "8512832f516946daeee7dab558a86aef9c25228aa1eb745c46142c1ea0deeaa7"
"""Of ``FILES``, as MLflow's client computes it."""


def entry(name: str, kind: bytes = tarfile.REGTYPE, **more: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in more.items():
        setattr(info, field, value)
    return info


def tar_of(entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """A tar file, not compressed."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in entries:
            info.size = len(data) if info.isreg() else info.size
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def packed(entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    return gzip.compress(tar_of(entries), mtime=0)


def archive(files: dict[str, bytes]) -> bytes:
    return packed([(entry(name), data) for name, data in files.items()])


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'
    head += "" if filename is None else f'; filename="{filename}"'
    return head.encode() + b"\r\n\r\n" + content + b"\r\n"


def body(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def upload(content: bytes, **metadata: Any) -> bytes:
    """The body by which MLflow's client uploads an archive."""
    return body(
        part("metadata", json.dumps(metadata).encode()), part("content", content, "content")
    )


HOSTILE: Final[dict[str, bytes]] = {
    "no gzip": b"plain",
    "no tar": gzip.compress(b"x" * 2000, mtime=0),
    "cut off": archive(FILES)[:-20],
    "wrong sum": archive(FILES)[:-8] + b"\0" * 8,
    "empty": packed([]),
    "folders alone": packed([(entry("a", tarfile.DIRTYPE), b"")]),
    "above": archive({"../x": b""}),
    "above inside": archive({"a/../../x": b""}),
    "absolute": archive({"/etc/passwd": b""}),
    "dot": archive({"a/./b": b""}),
    "backslash": archive({"a\\..\\b": b""}),
    "drive": archive({"C:/x": b""}),
    "stream": archive({"a:b": b""}),
    "device": archive({"nul.txt": b""}),
    "trailing dot": archive({"a./b": b""}),
    "trailing space": archive({"a ": b""}),
    "control": archive({"a\nb": b""}),
    "windows": archive({"a*b": b""}),
    "percent": archive({"a%2fb": b""}),
    "question": archive({"a b/c": b"", "what#": b""}),
    "long name": archive({"n" * 256: b""}),
    "deep": archive({"/".join("d" * 129): b""}),
    "long path": archive({"/".join(["n" * 200] * 21): b""}),
    "symbolic link": packed([(entry("l", tarfile.SYMTYPE, linkname="/etc/passwd"), b"")]),
    "hard link": packed([(entry("a"), b"x"), (entry("b", tarfile.LNKTYPE, linkname="a"), b"")]),
    "fifo": packed([(entry("f", tarfile.FIFOTYPE), b"")]),
    "device node": packed([(entry("d", tarfile.CHRTYPE), b"")]),
    "twice": packed([(entry("a"), b"1"), (entry("a"), b"2")]),
    "by case": archive({"a.md": b"", "A.md": b""}),
    "folder by case": archive({"a/x": b"", "A/y": b""}),
    "by normal form": archive({"\u00e9.md": b"", "e\u0301.md": b""}),
    "file as folder": archive({"a": b"", "a/b": b""}),
    "folder as file": archive({"a/b": b"", "a": b""}),
    "root is a file": archive({".": b""}),
    "too many": packed([(entry(f"f{number}"), b"") for number in range(10_001)]),
    "too large": archive({"a": bytes(26_214_401)}),
    "too large together": archive({"a": bytes(20_000_000), "b": bytes(20_000_000)}),
    "bomb in a header": gzip.compress(
        tar_of([(entry("a", pax_headers={"comment": "x" * 12_000_000}), b"")]), mtime=0
    ),
    "bomb behind the end": gzip.compress(tar_of([(entry("a"), b"x")]) + bytes(30_000_000), mtime=0),
}
"""Archives that must be refused."""
