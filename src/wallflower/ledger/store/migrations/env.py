"""Runs the revisions on the connection that the store holds, inside its transaction."""

from __future__ import annotations

from alembic import context


def run() -> None:
    """Bring the connection's database to the revision that was asked for."""
    context.configure(connection=context.config.attributes["connection"])
    with context.begin_transaction():
        context.run_migrations()


if __name__ == "env_py":  # the name under which Alembic runs this file; under any other it is only imported
    run()
