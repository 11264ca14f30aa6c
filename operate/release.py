"""``python -m operate.release``: writes the files of a release to ``dist/``: the built template
with its functions and layers as a zip file, a bill of materials of each layer, and checksums of
these and of the wheel, which `make wheel` has written there.

The version is that of the newest release in CHANGELOG.md. Equal sources give equal files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

ROOT: Final = Path(__file__).resolve().parents[1]
PRODUCT: Final = "mlflow-serverless"
LAYERS: Final = {"core": "mlcore", "tables": "mltables", "tokens": "tokens", "catalog": "catalog"}
"""The package in uv.lock of each layer's folder."""
BESIDE: Final = ("samconfig.toml", "LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md")
"""Files that the zip file contains in addition to the build."""
CHECKSUMS: Final = "SHA256SUMS"
_RELEASE: Final = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", re.MULTILINE)
_UNRELEASED: Final = "## [Unreleased]"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""


class NotReady(Exception):
    """Raised if the release is not ready; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the files of a release (``python -m operate.release``). Returns 0 if all files were
    written, otherwise 1."""
    parser = argparse.ArgumentParser(prog="python -m operate.release", description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / ".aws-sam/build")
    parser.add_argument("--architecture", default="arm64", choices=("arm64", "x86_64"))
    parser.add_argument("--folder", type=Path, default=ROOT / "dist")
    given = parser.parse_args(arguments)
    try:
        version = version_of((ROOT / "CHANGELOG.md").read_text(), versions())
        given.folder.mkdir(parents=True, exist_ok=True)
        name = f"{PRODUCT}-{version}"
        pack(given.build, given.folder / f"{name}-{given.architecture}.zip")
        for folder, package in LAYERS.items():
            (given.folder / f"{name}-{folder}.cdx.json").write_text(bill_of_materials(package))
        # The zip file of the other architecture may exist already.
        sums = checksums([wheel_in(given.folder, version), *sorted(given.folder.glob(f"{name}-*"))])
        (given.folder / CHECKSUMS).write_text(sums)
    except (NotReady, OSError, subprocess.CalledProcessError) as error:
        print(f"operate.release: {error}", file=sys.stderr)
        return 1
    print(sums, end="")
    return 0


def version_of(changelog: str, declared: Mapping[str, str]) -> str:
    """Returns the version of the newest release in the changelog.

    Args:
        declared: the version in each project file, by the file's path.

    Raises:
        NotReady: the changelog has unreleased entries or no release, or a project file has another
            version.
    """
    newest = _RELEASE.search(changelog)
    if newest is None:
        raise NotReady("CHANGELOG.md has no release (## [1.2.3] - 2026-01-31)")
    before = changelog[: newest.start()].partition(_UNRELEASED)[2]
    if before.strip():
        raise NotReady("CHANGELOG.md has unreleased entries; give them a version and a date")
    for path, version in declared.items():
        if version != newest[1]:
            raise NotReady(f"{path} has version {version}, CHANGELOG.md {newest[1]}")
    return newest[1]


def versions() -> dict[str, str]:
    """Returns the version that each project file (``pyproject.toml``) declares, by the file's
    path."""
    paths = [ROOT / "pyproject.toml", *sorted(ROOT.glob("layers/*/pyproject.toml"))]
    return {
        str(path.relative_to(ROOT)): tomllib.loads(path.read_text())["project"]["version"]
        for path in paths
    }


def wheel_in(folder: Path, version: str) -> Path:
    """Returns the path, in a folder, of this product's Python wheel of the given version.

    Raises:
        NotReady: the wheel does not exist.
    """
    path = folder / f"{PRODUCT.replace('-', '_')}-{version}-py3-none-any.whl"
    if not path.is_file():
        raise NotReady(f"{path} is missing; run `make wheel`")
    return path


def pack(build: Path, target: Path) -> None:
    """Writes a zip file with a build of the stack and the other files that `sam deploy` needs.

    Raises:
        NotReady: there is no build.
    """
    if not (build / "template.yaml").is_file():
        raise NotReady(f"{build} holds no template.yaml; run `make build`")
    files = {
        path.relative_to(build).as_posix(): path
        for path in build.rglob("*")
        if path.is_file() and path.name != "local-api.json"
    }
    files |= {name: ROOT / name for name in BESIDE}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = (0o755 if os.access(path, os.X_OK) else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


def bill_of_materials(package: str) -> str:
    """Returns the bill of materials of a layer in CycloneDX's JSON: its libraries with the versions
    in uv.lock."""
    exported = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("uv")), "export", "--quiet", "--frozen"),
            *("--no-dev", "--no-emit-workspace", "--package", package),
            *("--format", "cyclonedx1.5", "--preview-features", "sbom-export"),
        ],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout
    document: dict[str, Any] = json.loads(exported)
    del document["serialNumber"], document["metadata"]["timestamp"]  # they differ each time
    number = uuid5(NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return json.dumps({**document, "serialNumber": number.urn}, indent=1, sort_keys=True) + "\n"


def checksums(paths: Iterable[Path]) -> str:
    """Returns the SHA-256 checksums of files, in the form that `sha256sum --check` reads."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths
    )


if __name__ == "__main__":
    sys.exit(main())
