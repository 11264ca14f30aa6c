"""The model catalog as plain values: models and MCP servers with their artifacts and tools. Does no
I/O."""
