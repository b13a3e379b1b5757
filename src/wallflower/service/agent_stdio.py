"""The MCP server over standard input and output: for one assistant of the user of this machine."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from wallflower.service.api.agent_server import AgentServer
from wallflower.service.app import ASKED
from wallflower.service.core import logs
from wallflower.service.core.access.tokens import Caller
from wallflower.service.core.facade import Core
from wallflower.service.core.jobs import Jobs
from wallflower.service.settings import Settings


def serve_stdio(settings: Settings, analyst: str) -> None:
    """Answer until standard input ends. The rule of the settings holds; `analyst` is in the ledger with the agent."""
    logs.start()
    anyio.run(_serve, settings, analyst)


async def _serve(settings: Settings, analyst: str) -> None:
    core = Core(settings, ASKED)
    core.load()
    jobs = Jobs(settings, core.records, core.metrics.queue("questions"))
    caller = Caller(name=analyst, scope="analyst", token="")
    agents = AgentServer(core, lambda: jobs, lambda _: caller)
    try:
        async with stdio_server() as (incoming, outgoing):
            await agents.server.run(incoming, outgoing, agents.server.create_initialization_options())
    finally:
        await jobs.close()
        core.close()
