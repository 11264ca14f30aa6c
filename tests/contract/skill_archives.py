"""Archives of skills' folders, good and hostile, and multipart bodies that carry them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterable
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


def raw_entry(
    name: bytes, data: bytes = b"", kind: bytes = b"0", size: bytes | None = None
) -> bytes:
    """An entry as a hostile program writes it: any bytes as its name, and any size.

    Args:
        size: the 12 bytes of the field.
    """
    head = bytearray(512)
    head[: len(name)] = name
    head[100:108] = b"0000644\0"
    head[124:136] = b"%011o\0" % len(data) if size is None else size
    head[136:148] = b"00000000000\0"
    head[148:156] = b" " * 8
    head[156:157] = kind
    head[257:265] = b"ustar\x0000"
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + data + bytes(-len(data) % tarfile.BLOCKSIZE)


def pax_entry(fields: dict[bytes, bytes], kind: bytes = b"x") -> bytes:
    """A header that replaces fields of the next entry, or of all (``kind`` is ``g``)."""
    records = b""
    for name, value in fields.items():
        text = b" " + name + b"=" + value + b"\n"
        length = len(text) + len(str(len(text) + 2))
        records += str(length).encode() + text
    return raw_entry(b"PaxHeaders/x", records, kind)


def raw_archive(*entries: bytes) -> bytes:
    return gzip.compress(b"".join(entries) + bytes(2 * tarfile.BLOCKSIZE), mtime=0)


_A: Final = raw_entry(b"a", b"x")
_SPARSE: Final = {b"GNU.sparse.map": b"0,1", b"GNU.sparse.size": b"99999999999"}

HOSTILE: Final[dict[str, Callable[[], bytes]]] = {
    "no gzip": lambda: b"plain",
    "no tar": lambda: gzip.compress(b"x" * 2000, mtime=0),
    "cut off": lambda: archive(FILES)[:-20],
    "wrong sum": lambda: archive(FILES)[:-8] + b"\0" * 8,
    "empty": lambda: packed([]),
    "folders alone": lambda: packed([(entry("a", tarfile.DIRTYPE), b"")]),
    "above": lambda: archive({"../x": b""}),
    "above inside": lambda: archive({"a/../../x": b""}),
    "absolute": lambda: archive({"/etc/passwd": b""}),
    "dot": lambda: archive({"a/./b": b""}),
    "backslash": lambda: archive({"a\\..\\b": b""}),
    "drive": lambda: archive({"C:/x": b""}),
    "stream": lambda: archive({"a:b": b""}),
    "device": lambda: archive({"nul.txt": b""}),
    "trailing dot": lambda: archive({"a./b": b""}),
    "trailing space": lambda: archive({"a ": b""}),
    "control": lambda: archive({"a\nb": b""}),
    "windows": lambda: archive({"a*b": b""}),
    "percent": lambda: archive({"a%2fb": b""}),
    "question": lambda: archive({"a b/c": b"", "what#": b""}),
    "long name": lambda: archive({"n" * 256: b""}),
    "deep": lambda: archive({"/".join("d" * 129): b""}),
    "long path": lambda: archive({"/".join(["n" * 200] * 21): b""}),
    "symbolic link": lambda: packed([(entry("l", tarfile.SYMTYPE, linkname="/etc/passwd"), b"")]),
    "hard link": lambda: packed(
        [(entry("a"), b"x"), (entry("b", tarfile.LNKTYPE, linkname="a"), b"")]
    ),
    "fifo": lambda: packed([(entry("f", tarfile.FIFOTYPE), b"")]),
    "device node": lambda: packed([(entry("d", tarfile.CHRTYPE), b"")]),
    "twice": lambda: packed([(entry("a"), b"1"), (entry("a"), b"2")]),
    "by case": lambda: archive({"a.md": b"", "A.md": b""}),
    "folder by case": lambda: archive({"a/x": b"", "A/y": b""}),
    "by normal form": lambda: archive({"\u00e9.md": b"", "e\u0301.md": b""}),
    "file as folder": lambda: archive({"a": b"", "a/b": b""}),
    "folder as file": lambda: archive({"a/b": b"", "a": b""}),
    "root is a file": lambda: archive({".": b""}),
    "too many": lambda: packed([(entry(f"f{number}"), b"") for number in range(10_001)]),
    "too large": lambda: archive({"a": bytes(26_214_401)}),
    "too large together": lambda: archive({"a": bytes(20_000_000), "b": bytes(20_000_000)}),
    "bomb in a header": lambda: gzip.compress(
        tar_of([(entry("a", pax_headers={"comment": "x" * 12_000_000}), b"")]), mtime=0
    ),
    "bomb behind the end": lambda: gzip.compress(
        tar_of([(entry("a"), b"x")]) + bytes(30_000_000), mtime=0
    ),
    "name that is no UTF-8": lambda: raw_archive(raw_entry(b"a\xff\xfe", b"x")),
    "path that is no UTF-8": lambda: raw_archive(pax_entry({b"path": b"a\xff"}), _A),
    "path as bytes": lambda: raw_archive(
        pax_entry({b"hdrcharset": b"BINARY", b"path": b"\xff"}), _A
    ),
    "path of a header": lambda: raw_archive(pax_entry({b"path": b"../x"}), _A),
    "path for all": lambda: raw_archive(pax_entry({b"path": b"../x"}, b"g"), _A),
    "zero in a path": lambda: raw_archive(pax_entry({b"path": b"a\0b"}), _A),
    "long name above": lambda: raw_archive(raw_entry(b"././@LongLink", b"../x\0", b"L"), _A),
    "twice by a header": lambda: raw_archive(_A, pax_entry({b"path": b"a"}), raw_entry(b"b", b"y")),
    "size of a header": lambda: raw_archive(pax_entry({b"size": b"99999999999999999999"}), _A),
    "negative size of a header": lambda: raw_archive(pax_entry({b"size": b"-1"}), _A),
    "size in base 256": lambda: raw_archive(raw_entry(b"a", size=b"\x80" + b"\xff" * 11)),
    "negative size in base 256": lambda: raw_archive(raw_entry(b"a", size=b"\xff" * 12)),
    "sparse and large": lambda: raw_archive(pax_entry(_SPARSE), _A),
    "sparse and above": lambda: raw_archive(
        pax_entry({**_SPARSE, b"GNU.sparse.major": b"1", b"GNU.sparse.name": b"../x"}), _A
    ),
    "unknown kind": lambda: raw_archive(raw_entry(b"u", b"x", b"Z")),
    "many long names": lambda: raw_archive(raw_entry(b"././@LongLink", b"xx\0", b"L") * 20_000, _A),
    "many headers": lambda: raw_archive(pax_entry({b"path": b"b"}) * 20_000, _A),
    "archive in an archive": lambda: gzip.compress(archive(FILES), mtime=0),
    "something behind the end": lambda: archive(FILES) + b"more",
}
"""Archives that must be refused; some are large, so each is made when it is sent."""
