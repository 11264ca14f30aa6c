"""Downloads the npm package with the chart library of the dashboards, without npm. Checks the
archive's SHA-512 and unpacks it.

Run as ``python local/http/chart_library_download.py NAME VERSION SHA512 FOLDER``.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tarfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final

WANTED: Final = {
    "package/dist/echarts.common.min.js": "echarts.js",
    "package/LICENSE": "echarts.LICENSE.txt",
    "package/NOTICE": "echarts.NOTICE.txt",
}
"""Members of the archive, and their names in the folder."""


PUBLIC_REGISTRY: Final = "https://registry.npmjs.org/"
_SECONDS: Final = 60.0
_SETTING: Final = re.compile(r"^\s*registry\s*=\s*[\"']?([^\"'\s]+)", re.MULTILINE)


def registry(home: Path, environ: Mapping[str, str]) -> str:
    """Returns the URL of the npm registry to use: from npm's environment variable, else from the
    user's npm settings, else the public registry.
    """
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if environ.get(name):
            return environ[name]
    settings = Path(environ.get("npm_config_userconfig") or home / ".npmrc")
    try:
        named = _SETTING.search(settings.read_text())
    except (OSError, UnicodeDecodeError):
        named = None
    return named[1] if named else PUBLIC_REGISTRY


def fetch(name: str, version: str, archive: Path, address: str) -> None:
    """Downloads an npm package to ``archive``, through the proxies that the environment names.

    Raises:
        ValueError: the address is neither HTTPS nor HTTP.
        OSError: the registry does not respond, or has no such archive.
    """
    url = f"{address.rstrip('/')}/{name}/-/{name}-{version}.tgz"
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"{address} is no address of a registry")
    with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - checked above
        archive.write_bytes(answer.read())


def unpack(archive: Path, sha512: str, folder: Path) -> None:
    """Checks the archive of the chart library and writes the library, its licence and its notice
    into the folder.

    Raises:
        ValueError: the archive has another SHA-512, or lacks one of the files. Nothing was written.
        tarfile.TarError: the archive is no tar archive.
    """
    digest = hashlib.sha512(archive.read_bytes()).hexdigest()
    if digest != sha512:
        raise ValueError(f"{archive} has the SHA-512 {digest} instead of {sha512}.")
    with tarfile.open(archive) as content:
        names = {member.name for member in content if member.isfile()}
        if missing := [member for member in WANTED if member not in names]:
            raise ValueError(f"{archive} lacks {', '.join(missing)}.")
        for member, name in WANTED.items():
            if file := content.extractfile(member):
                (folder / name).write_bytes(file.read())


def main(name: str, version: str, sha512: str, folder: Path) -> None:
    """Downloads the chart library, checks it and unpacks it into a folder. Ends the program with a
    message if the download or the check fails.
    """
    archive = folder / "archive.tgz"
    address = registry(Path.home(), os.environ)
    try:
        fetch(name, version, archive, address)
        unpack(archive, sha512, folder)
    except (OSError, ValueError, tarfile.TarError) as error:
        sys.exit(f"{name} {version} cannot be fetched from {address}: {error}")
    finally:
        archive.unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
