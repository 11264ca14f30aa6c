"""Headers of a file in a response: its content type and file name."""

from __future__ import annotations

import mimetypes
import re
import unicodedata
from typing import Final
from urllib.parse import quote

_SHOWN_AS_TEXT: Final = frozenset(
    (
        *("txt", "log", "err", "cfg", "conf", "cnf", "cf", "ini", "properties", "prop", "hocon"),
        *("toml", "yaml", "yml", "xml", "json", "js", "py", "py3", "csv", "tsv", "md", "rst"),
        *("ipynb", "MLmodel", "mlproject"),
    )
)
"""Extensions, and names without one, that MLflow serves as plain text."""

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def content_type(name: str) -> str:
    """Returns the content type with which MLflow's server serves a file of this name."""
    extension = name.rpartition(".")[2] if "." in name[1:] else ""
    if (extension or name) in _SHOWN_AS_TEXT:
        return "text/plain"
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def attachment(name: str) -> str:
    """Returns a Content-Disposition header with which browsers save the file. Without it they would
    show it as content of this server's origin."""
    if name.isascii():
        return f"attachment; filename={_quoted(name)}"
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode() or "download"
    encoded = quote(name, safe="!#$&+-.^_`|~")
    return f"attachment; filename={_quoted(plain)}; filename*=UTF-8''{encoded}"


def _quoted(name: str) -> str:
    if _TOKEN.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
