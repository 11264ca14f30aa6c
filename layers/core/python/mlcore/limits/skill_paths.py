"""MLflow's rules about the paths of a skill's files: each can be written on Linux, macOS and
Windows, and no two of them are the same file anywhere."""

from __future__ import annotations

import unicodedata
from typing import Final

from mlcore.errors import InvalidParameterValue

MAX_SEGMENT_BYTES: Final = 255
MAX_DEPTH: Final = 128
MAX_PATH_BYTES: Final = 4096

_WINDOWS_CHARACTERS: Final = '<>"|?*'
_WINDOWS_DEVICES: Final = frozenset(
    (
        *("CON", "PRN", "AUX", "NUL"),
        *(f"{device}{number}" for device in ("COM", "LPT") for number in range(1, 10)),
    )
)


def shown(text: str) -> str:
    """Returns the path of a skill's file for an error message, with bytes that are not UTF-8
    escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def relative_path(path: str) -> str | None:
    """Returns the path of a skill's file without empty segments; None for the root itself.

    Raises:
        InvalidParameterValue: the path leads outside, is too deep or too long, or cannot be written
            on Linux, macOS and Windows.
    """
    if "\\" in path:
        raise InvalidParameterValue(f"Path '{shown(path)}' must use forward slashes as separators.")
    if path.startswith("/"):
        raise InvalidParameterValue(f"Path '{shown(path)}' must be relative to the content root.")
    segments = [segment for segment in path.split("/") if segment]
    if len(segments) > MAX_DEPTH:
        raise InvalidParameterValue(
            f"Path '{shown(path)}' is nested deeper than {MAX_DEPTH} directories."
        )
    if _bytes(path) > MAX_PATH_BYTES:
        raise InvalidParameterValue(f"Path '{shown(path)}' is longer than {MAX_PATH_BYTES} bytes.")
    for segment in segments:
        _check_segment(segment, shown(path))
    return "/".join(segments) or None


def _bytes(text: str) -> int:
    """Returns the size of a text in UTF-8, or of its NFC form if that is larger."""
    normal = unicodedata.normalize("NFC", text)
    return max(len(form.encode("utf-8", "surrogatepass")) for form in (text, normal))


def _check_segment(segment: str, path: str) -> None:
    if segment in (".", ".."):
        raise InvalidParameterValue(f"Path '{path}' must not contain '.' or '..' segments.")
    if ":" in segment:
        raise InvalidParameterValue(f"Path '{path}' must not contain ':' in a segment.")
    if any(character in _WINDOWS_CHARACTERS for character in segment):
        raise InvalidParameterValue(
            f"Path '{path}' contains a character Windows does not allow in names "
            f"({_WINDOWS_CHARACTERS})."
        )
    if segment[-1] in " .":
        raise InvalidParameterValue(f"Path '{path}' has a name ending in a space or period.")
    if any(ord(character) < 32 or character == "\x7f" for character in segment):
        raise InvalidParameterValue(f"Path '{path}' must not contain control characters.")
    if any("\ud800" <= character <= "\udfff" for character in segment):
        raise InvalidParameterValue(f"Path '{path}' is not valid UTF-8.")
    if _bytes(segment) > MAX_SEGMENT_BYTES:
        raise InvalidParameterValue(
            f"Path '{path}' has a name longer than {MAX_SEGMENT_BYTES} bytes."
        )
    if segment.partition(".")[0].upper() in _WINDOWS_DEVICES:
        raise InvalidParameterValue(f"Path '{path}' uses a reserved Windows device name.")


def normal_subpath(subpath: str | None) -> str | None:
    """Returns the path of a folder within the source of a skill version, trimmed and without empty
    segments; None for the whole source. Raises InvalidParameterValue for a path that is absolute,
    too long or too deep, or has a segment such as ``..`` that is not allowed."""
    trimmed = (subpath or "").strip()
    if not trimmed:
        return None
    try:
        return relative_path(trimmed)
    except InvalidParameterValue as error:
        raise InvalidParameterValue(f"Subpath '{subpath}' is invalid: {error.message}") from None


class Tree:
    """Collects the paths of a skill's files and folders, and checks that no two of them are the
    same file on any system."""

    def __init__(self) -> None:
        self._by_normal_form: dict[str, str] = {}
        self._by_folded_form: dict[str, str] = {}
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def add_folder(self, path: str, entry: str) -> None:
        """Adds a folder and the folders that contain it. Adding it again has no effect.

        Args:
            entry: its name in the uploaded archive, for the error message.

        Raises:
            InvalidParameterValue: the folder clashes with another path.
        """
        segments = path.split("/")
        for depth in range(1, len(segments) + 1):
            folder = "/".join(segments[:depth])
            if folder in self._folders:
                continue
            if folder in self._files:
                raise InvalidParameterValue(
                    f"Entry '{shown(entry)}' uses '{folder}' as a directory, but it is a file."
                )
            self._add(folder)
            self._folders.add(folder)

    def add_file(self, path: str, entry: str) -> str:
        """Adds a file of a skill and the folders that contain it. Returns the path in NFC form
        (composed Unicode). Arguments and errors are those of :meth:`add_folder`."""
        folder = path.rpartition("/")[0]
        if folder:
            self.add_folder(folder, entry)
        if path in self._folders:
            raise InvalidParameterValue(
                f"Entry '{shown(entry)}' is a file, but '{path}' is also a directory."
            )
        normal = self._add(path)
        self._files.add(path)
        return normal

    def folders(self) -> set[str]:
        return self._folders

    def _add(self, path: str) -> str:
        normal = unicodedata.normalize("NFC", path)
        previous = self._by_normal_form.get(normal)
        if previous == path:
            raise InvalidParameterValue(f"Path '{path}' appears more than once.")
        if previous is not None:
            raise InvalidParameterValue(
                f"Paths '{previous}' and '{path}' normalize to the same path '{normal}'; the skill "
                "tree is ambiguous."
            )
        folded = normal.casefold()
        previous = self._by_folded_form.get(folded)
        if previous is not None:
            raise InvalidParameterValue(
                f"Paths '{previous}' and '{path}' differ only by letter case; the skill tree is "
                "ambiguous on case-insensitive filesystems."
            )
        self._by_normal_form[normal] = path
        self._by_folded_form[folded] = path
        return normal
