"""What a deployment costs in a month: while nobody works, and while a team does."""
