"""What the description of the service says of each route: its answers, with examples, and its problems."""
