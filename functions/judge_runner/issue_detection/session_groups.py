"""Groups traces for triage. The traces of a session are one group; a trace without a session is a
group of its own."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from mlcore import reserved_tags
from mlcore.repos.traces.traces import StoredTrace


class Group(NamedTuple):
    """The traces of a session in chronological order, or a single trace without a session."""

    session: str | None
    traces: tuple[StoredTrace, ...]

    @property
    def first(self) -> StoredTrace:
        """The first trace of a group (the traces of one session, or one trace without a session),
        which gets the assessments of the whole group."""
        return self.traces[0]


def sample(stored: Sequence[StoredTrace], most: int) -> list[Group]:
    """Groups traces by session; a trace without a session is a group. Of more than ``most`` groups,
    returns a sample, which is the same each time."""
    by_name: dict[tuple[str, str], list[StoredTrace]] = {}
    for trace in stored:
        session = trace.document.texts("trace_metadata").get(reserved_tags.TRACE_SESSION)
        name = ("session", session) if session else ("trace", trace.trace_id)
        by_name.setdefault(name, []).append(trace)
    names = list(by_name)
    if len(names) > most:
        chosen = set(sorted(names, key=_digest)[:most])
        names = [name for name in names if name in chosen]
    return [
        Group(
            name[1] if name[0] == "session" else None,
            tuple(sorted(by_name[name], key=lambda each: (each.info.request_time, each.trace_id))),
        )
        for name in names
    ]


def _digest(name: tuple[str, str]) -> bytes:
    return blake2b("\n".join(name).encode(errors="surrogatepass"), digest_size=16).digest()
