"""The AI gateway: the configuration of a workspace, and budgets."""
