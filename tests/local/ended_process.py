"""Whether a process has ended, as Linux tells it."""

from pathlib import Path


def gone(pid: int) -> bool:
    """A zombie, which its parent has not waited for, has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
