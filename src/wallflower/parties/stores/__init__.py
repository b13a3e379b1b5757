"""What each party remembers, in a SQLite file of its own, durable before anything is told."""
