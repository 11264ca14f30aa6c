"""The settings of a deployment, which administrators change while it runs: ``CFG#`` items."""
