"""Unpacks the chart library of the dashboards from its npm archive, after checking the archive's
SHA-512.
Run as ``python local/http/chart_library.py ARCHIVE SHA512 FOLDER``.
"""

from __future__ import annotations

import hashlib
import sys
import tarfile
from pathlib import Path
from typing import Final

WANTED: Final = {
    "package/dist/echarts.common.min.js": "echarts.js",
    "package/LICENSE": "echarts.LICENSE.txt",
    "package/NOTICE": "echarts.NOTICE.txt",
}
"""Members of the archive, and their names in the folder."""


def unpack(archive: Path, sha512: str, folder: Path) -> None:
    """Writes the library, its licence and its notice into the folder.

    Raises:
        ValueError: the archive has another SHA-512.
        KeyError: the archive lacks one of the files.
    """
    digest = hashlib.sha512(archive.read_bytes()).hexdigest()
    if digest != sha512:
        raise ValueError(f"{archive} has the SHA-512 {digest} instead of {sha512}.")
    with tarfile.open(archive) as content:
        for member, name in WANTED.items():
            file = content.extractfile(member)
            if file is None:
                raise KeyError(member)
            (folder / name).write_bytes(file.read())


if __name__ == "__main__":
    unpack(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
