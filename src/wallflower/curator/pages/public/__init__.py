"""Pages that are open to everybody: who runs the service, and what programs can call."""
