"""The library that all functions share: keys, models, repositories, wire format, search and
errors."""
