"""The fixtures of the doubles, for the tests of the doubles themselves."""

from tests.doubles.fixtures import *  # noqa: F403
