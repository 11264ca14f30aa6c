"""Which values the server accepts in requests about evaluation datasets, scorers, judges, label
schemas, review queues and issues."""
