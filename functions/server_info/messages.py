"""Declares the request for the server's capabilities."""

from __future__ import annotations

from mlcore.wire import Message


class GetServerInfo(Message):
    """The request for the server's capabilities; it takes no arguments."""
