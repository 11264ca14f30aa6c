"""The model catalog as plain values: models, MCP servers, and what belongs to them; opens
nothing."""
