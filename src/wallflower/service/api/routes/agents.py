"""Routes for the questions of agents: what they asked for the caller, and the caller's confirmation."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Path, Request

from wallflower.service.api import models
from wallflower.service.api.callers import AnyCaller
from wallflower.service.api.responses import new_router, problem_docs
from wallflower.service.core.agents import Agents

QuestionId = Annotated[str, Path(max_length=64, description="id of a question")]

ROUTER: Final = new_router()


async def get_agents(request: Request) -> Agents:
    """Return the questions of agents of this service."""
    agents: Agents = request.app.state.agents
    return agents


TheAgents = Annotated[Agents, Depends(get_agents)]


@ROUTER.get("/agent-questions", tags=["agents"], responses=problem_docs(403))
def agent_questions(caller: AnyCaller, agents: TheAgents) -> models.AgentQuestions:
    """Questions that agents asked for the caller, latest first; of all agents for a steward."""
    return models.AgentQuestions(questions=[models.AgentQuestion(**one.to_json()) for one in agents.all(caller)])


@ROUTER.post("/agent-questions/{question}/confirm", tags=["agents"], responses=problem_docs(403, 404, 409))
def confirm_agent_question(question: QuestionId, caller: AnyCaller, agents: TheAgents) -> models.AgentQuestion:
    """Confirm a question of an agent. It is charged when the agent fetches its answer, exactly as it is shown here."""
    return models.AgentQuestion(**agents.decide(caller, question, "confirmed").to_json())


@ROUTER.post("/agent-questions/{question}/decline", tags=["agents"], responses=problem_docs(403, 404, 409))
def decline_agent_question(question: QuestionId, caller: AnyCaller, agents: TheAgents) -> models.AgentQuestion:
    """Decline a question of an agent. It is never charged."""
    return models.AgentQuestion(**agents.decide(caller, question, "declined").to_json())
