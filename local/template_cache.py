"""Caches in a file what the local server reads from the deployment's template (template.yaml), so
that the next start neither imports a YAML parser nor parses the template again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from local import template, template_definitions
from local.template import Template

FOLDER: Final = Path(__file__).parent / "__pycache__"
"""The folder of the cache, beside this package's compiled modules. A user who can write to it
could also change those modules."""


def read(
    path: Path,
    table_name: str,
    region: str,
    parameters: Mapping[str, str] | None = None,
    folder: Path = FOLDER,
) -> Template:
    """Returns the same as :func:`local.template.read`. The result comes from the cache file in
    ``folder`` if neither the template nor the code that reads templates has changed since that file
    was written.

    Raises:
        TemplateError: as :func:`local.template.read`.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return template.read(path, table_name, region, parameters)  # it words the error
    chosen = repr((str(path), table_name, region, sorted((parameters or {}).items())))
    kept = (
        folder / f"template.{_digest(chosen.encode())[:16]}.{sys.implementation.cache_tag}.pickle"
    )
    state = _digest(content) + _program()
    with contextlib.suppress(Exception):  # absent, damaged, or written by another version
        known, cached = pickle.loads(kept.read_bytes())  # noqa: S301 - see FOLDER
        if known == state and isinstance(cached, Template):
            return cached
    parsed = template.read(path, table_name, region, parameters)
    if not sys.dont_write_bytecode:
        _write(kept, pickle.dumps((state, parsed)))
    return parsed


def _program() -> str:
    """Returns a text that changes when the code that reads templates changes: its files'
    modification times."""
    modules = (
        template.__file__,
        template_definitions.__file__,
        str(Path(__file__).with_name("cloudformation.py")),
    )
    return ",".join(str(Path(file).stat().st_mtime_ns) for file in modules if file)


def _write(kept: Path, content: bytes) -> None:
    """Replaces the cache file atomically, because another runner may be reading it. Failures are
    ignored."""
    made = kept.with_name(f"{kept.name}.{os.getpid()}")
    with contextlib.suppress(OSError):  # the folder is read-only, or the disk is full
        kept.parent.mkdir(exist_ok=True)
        made.write_bytes(content)
        made.replace(kept)
    with contextlib.suppress(OSError):
        made.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=20).hexdigest()
