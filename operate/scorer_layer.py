"""``python -m operate.scorer_layer REQUIREMENTS``: builds a Lambda layer with packages that scorers
may import (the parameters ``CodeScorerLayerArn`` and ``CodeScorerPackages``).

The file REQUIREMENTS must pin all packages with hashes, including indirect ones: ``uv pip compile
--generate-hashes`` writes such a file. Only wheels for the functions' processor are installed, and
no code of a package is run. The packages are in a folder of their own in the layer, so that none
replaces a library of the server.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from operate import sam_build
from operate.module_loading import CannotRun

FOLDER: Final = "scorer_packages"
"""The folder of the packages in the layer; mlcore.scorer_cage.cage looks for them there."""
MOST_BYTES: Final = 262_144_000 - 60 * 2**20
"""The most bytes of the unpacked packages: Lambda unpacks 250 MiB for a function and its layers
(quota); the function and the core layer have less than the rest."""
DIRECT_BYTES: Final = 50 * 2**20
"""A larger file reaches Lambda through a bucket only (quota)."""
_MACHINES: Final = {"arm64": "aarch64", "x86_64": "x86_64"}
_PLATFORMS: Final = ("manylinux_2_28", "manylinux_2_24", "manylinux_2_17", "manylinux2014")
"""The platform tags of wheels that run in Lambda's Python 3.13 (glibc 2.34)."""
_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The modification time of all files in the zip file, so that equal packages give equal zip
files."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds a layer with the packages of scorers (``python -m operate.scorer_layer``). Returns 0
    if the layer was built, otherwise 1."""
    parser = argparse.ArgumentParser(prog="python -m operate.scorer_layer", description=__doc__)
    parser.add_argument("requirements", type=Path, help="requirements.txt with hashes")
    parser.add_argument("--architecture", choices=sorted(_MACHINES), default="arm64")
    parser.add_argument("--folder", type=Path, default=Path("dist"), help="%(default)s")
    given = parser.parse_args(arguments)
    try:
        layer = build(given.requirements, given.architecture, given.folder)
    except (CannotRun, OSError) as error:
        print(f"operate.scorer_layer: {error}", file=sys.stderr)
        return 1
    size = layer.stat().st_size
    source = (
        f"--zip-file fileb://{layer}"
        if size <= DIRECT_BYTES
        else f"--content S3Bucket=YOURS,S3Key={layer.name}  # after: aws s3 cp {layer} s3://YOURS/"
    )
    print(f"layer    {layer}, {size / 2**20:.1f} MiB")
    print(
        "publish  aws lambda publish-layer-version --layer-name mlflow-scorer-packages"
        f" --compatible-runtimes {sam_build.PYTHON}"
        f" --compatible-architectures {given.architecture} {source}"
    )
    print("deploy   with CodeScorerLayerArn=<the LayerVersionArn that it prints>")
    print(f"         and CodeScorerPackages={names(layer)}, or only some of these packages")
    return 0


def build(requirements: Path, architecture: str, folder: Path) -> Path:
    """Builds a Lambda layer with the packages in the file ``requirements`` and returns the layer's
    path.

    Raises:
        CannotRun: pip refused the requirements, or the packages are too large for Lambda.
    """
    with tempfile.TemporaryDirectory() as made:
        packages = Path(made) / FOLDER
        _install(requirements, _MACHINES[architecture], packages)
        size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
        if size > MOST_BYTES:
            raise CannotRun(
                f"the packages have {size / 2**20:.0f} MiB unpacked, and Lambda has room for"
                f" {MOST_BYTES / 2**20:.0f} beside the server"
            )
        folder.mkdir(parents=True, exist_ok=True)
        layer = folder / f"scorer-layer-{architecture}.zip"
        with zipfile.ZipFile(layer, "w") as archive:
            for path in sorted(packages.rglob("*")):
                if path.is_file():
                    name = zipfile.ZipInfo(str(path.relative_to(made)), _TIME)
                    name.compress_type = zipfile.ZIP_DEFLATED
                    name.external_attr = 0o100644 << 16
                    archive.writestr(name, path.read_bytes())
    return layer


def names(layer: Path) -> str:
    """Returns the names under which Python can import the packages of a layer, separated by
    commas, without names that begin with ``_``."""
    with zipfile.ZipFile(layer) as archive:
        tops = {name.split("/")[1] for name in archive.namelist()}
    found = {top.partition(".")[0] for top in tops if not top.endswith(".libs")}
    modules = {top for top in found if top.isidentifier() and not top.startswith("_")}
    return ",".join(sorted(modules - {"bin", "share", "include", "etc"}))


def _install(requirements: Path, machine: str, target: Path) -> None:
    """Installs the wheels and compiles them: /opt is read-only in Lambda."""
    python = str(sam_build.interpreter())
    done = subprocess.run(
        [
            *(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *(
                "--require-hashes",
                "--only-binary",
                ":all:",
                "--no-compile",
                "--target",
                str(target),
            ),
            *(
                "--python-version",
                sam_build.PYTHON.removeprefix("python"),
                "--implementation",
                "cp",
            ),
            *(word for each in _PLATFORMS for word in ("--platform", f"{each}_{machine}")),
            *("--requirement", str(requirements)),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise CannotRun(f"pip refused {requirements}:\n{done.stderr.strip()}")
    subprocess.run(
        [
            *(python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"),
            *("-s", str(target), "-p", f"/opt/{FOLDER}", str(target)),
        ],
        check=False,  # packages have templates that are no Python
        capture_output=True,
    )


if __name__ == "__main__":
    sys.exit(main())
