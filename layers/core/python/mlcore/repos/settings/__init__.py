"""The settings of a deployment: ``CFG#`` items."""
