"""The AI gateway: the configuration of each workspace, budgets and their spending, the usage of
keys and users, and the calls that have not ended."""
