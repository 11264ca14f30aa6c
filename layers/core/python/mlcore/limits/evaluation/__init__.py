"""Rules about evaluation datasets, scorers, judges, label schemas, review queues and issues."""
