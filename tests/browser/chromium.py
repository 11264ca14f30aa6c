"""The Chromium that the tests drive: `make setup` unpacks one, or the machine has one."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

from tests.engines import ROOT

FOLDER = ROOT / ".tools/browser"
INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
APPLICATIONS = (
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
)
NO_OTHER_MACHINE = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
"""Of names: the tests ask nothing of the internet."""
ARGUMENTS = [
    # Containers have neither the kernel's sandbox for an unprivileged user nor much shared memory.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    # Nothing but the page under test is asked for anything.
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No page lives long enough to win back what it costs to optimize its code.
    "--js-flags=--no-turbofan --no-maglev",
    "--no-proxy-server",
    f"--host-resolver-rules={NO_OTHER_MACHINE}",
]


def executable() -> Path:
    """The browser: TEST_BROWSER, else the one of `make setup`, else one of the machine.

    Raises:
        FileNotFoundError: there is none.
    """
    named = os.environ.get("TEST_BROWSER")
    if named:
        return Path(named)
    results = [FOLDER / "chromium", *(Path(shutil.which(name) or "") for name in INSTALLED)]
    for path in (*results, *APPLICATIONS):
        if path.is_file():
            return path
    raise FileNotFoundError(
        "The tests of the web UI need Chromium or Chrome: `make setup` brings one on Linux x64; "
        "elsewhere install one, or name it in TEST_BROWSER."
    )


def environment(browser: Path) -> dict[str, Any]:
    """What the unpacked browser needs to find its own libraries and fonts."""
    kept: dict[str, Any] = dict(os.environ)
    if browser.parent == FOLDER:
        kept["LD_LIBRARY_PATH"] = f"{FOLDER / 'lib'}:{kept.get('LD_LIBRARY_PATH', '')}"
        kept["FONTCONFIG_FILE"] = str(FOLDER / "fonts.conf")
    return kept


def extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Extracts an archive, and nothing outside the folder.

    Raises:
        tarfile.TarError: a member leaves the folder, or is neither a file, a folder nor a link.
    """
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
        return
    # Python 3.11.0 to 3.11.3 has no filters. Each member is checked when those before it are
    # there, so that a link among them cannot lead a later one out of the folder.
    for member in archive:
        _check(member, folder.resolve())
        member.mode &= 0o755
        archive.extract(member, folder)


def _check(member: tarfile.TarInfo, folder: Path) -> None:
    places = [folder / member.name]
    if member.issym():
        places.append(places[0].parent / member.linkname)
    elif member.islnk():
        places.append(folder / member.linkname)
    elif not (member.isfile() or member.isdir()):
        raise tarfile.ExtractError(f"{member.name} is neither a file, a folder nor a link")
    for path in places:
        if not path.resolve().is_relative_to(folder):
            raise tarfile.ExtractError(f"{member.name} leads out of {folder}")


def unpack(folder: Path) -> None:
    """Unpacks the files of the npm package in ``folder/node_modules`` into ``folder``."""
    import brotli  # noqa: PLC0415 - only `make setup` unpacks

    packed = folder / "node_modules/@sparticuz/chromium/bin"
    for name in ("al2023", "fonts", "swiftshader"):
        content = brotli.decompress((packed / f"{name}.tar.br").read_bytes())
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            extract(archive, folder)
    fonts, cache = (folder / "fonts").resolve(), (folder / "font-cache").resolve()
    (folder / "fonts.conf").write_text(
        f"<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>\n"
    )
    program = folder / "chromium"
    program.write_bytes(brotli.decompress((packed / "chromium.br").read_bytes()))
    program.chmod(0o755)
    shutil.rmtree(folder / "node_modules")


if __name__ == "__main__":
    unpack(Path(sys.argv[1]))
