"""The archive of the browser is unpacked on every supported Python, and only into its folder."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import extract


class OldArchive(tarfile.TarFile):
    """As Python 3.11.0 to 3.11.3 has it: ``extractall`` takes no filter, so this override is
    narrower than the method of other versions."""

    def extractall(  # type: ignore[override]
        self,
        path: Any = ".",
        members: Iterable[tarfile.TarInfo] | None = None,
        *,
        numeric_owner: bool = False,
    ) -> None:
        super().extractall(path, members, numeric_owner=numeric_owner)


HERE = ["with filters"] if hasattr(tarfile, "data_filter") else []


@pytest.fixture(params=["without filters", *HERE])
def unpacked(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Path]:
    """Extracts an archive of the members into a folder, and answers that."""
    kind: type[tarfile.TarFile] = tarfile.TarFile
    if request.param == "without filters":
        kind = OldArchive
        monkeypatch.delattr(tarfile, "data_filter", raising=False)

    def unpack(*members: tuple[str, bytes, str]) -> Path:
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as archive:
            for name, type_, text in members:
                member = tarfile.TarInfo(name)
                member.type = type_
                if type_ == tarfile.REGTYPE:
                    member.size, member.mode = len(text), 0o4755
                else:
                    member.linkname = text
                archive.addfile(member, io.BytesIO(text.encode()))
        content.seek(0)
        target = tmp_path / "target"
        target.mkdir()
        with kind.open(fileobj=content) as archive:
            extract(archive, target)
        return target

    return unpack


FILE, LINK, HARD, DEVICE = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE


def test_files_and_links_within_the_folder(unpacked: Callable[..., Path]) -> None:
    target = unpacked(
        ("lib/one.so.1", FILE, "one"),
        ("lib/one.so", LINK, "one.so.1"),
        ("two", HARD, "lib/one.so.1"),
    )
    assert [(target / name).read_text() for name in ("lib/one.so", "two")] == ["one", "one"]
    assert not (target / "lib/one.so.1").stat().st_mode & 0o4022


@pytest.mark.parametrize(
    "members",
    [
        [("../out", FILE, "x")],
        [("lib", LINK, "../.."), ("lib/out", FILE, "x")],
        [("lib", LINK, "/tmp")],
        [("copy", HARD, "../secret")],
        [("device", DEVICE, "")],
    ],
)
def test_whatever_leaves_the_folder_is_refused(
    unpacked: Callable[..., Path], tmp_path: Path, members: list[tuple[str, bytes, str]]
) -> None:
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(tarfile.TarError):
        unpacked(*members)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret", "target"]
