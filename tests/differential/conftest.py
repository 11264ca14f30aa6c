"""The servers under comparison."""

from tests.differential.servers import *  # noqa: F403
