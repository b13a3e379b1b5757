"""Queries of agents: an assistant asks for a person, within a rule that the steward sets.

An agent spends at most `unconfirmed_epsilon` a day on an account without a person's confirmation, and at most
`quota_epsilon` in all. Everything else waits until a person confirms it on another channel, with rights that no agent
has: an agent's token opens nothing but the MCP server. A confirmed query is charged once, exactly as it was shown.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final, Literal, Self

from wallflower.ledger import Quote
from wallflower.ledger.chain import canonical
from wallflower.privacy import Kind
from wallflower.query import Query
from wallflower.query.parameter import entries_of, fill
from wallflower.release import require_useful
from wallflower.service.core.access.tokens import Caller, new_id
from wallflower.service.core.clock import moment, now
from wallflower.service.core.facade import Admission, Core
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import AGENT_QUESTIONS
from wallflower.service.settings import AgentRule

State = Literal["allowed", "waiting", "confirmed", "declined", "expired"]

MAX_WAITING: Final = 50  # questions of one analyst's agents that wait for a person
MAX_NAME_LETTERS: Final = 40
_OTHER_LETTERS: Final = re.compile(r"[^a-z0-9._]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentQuestion:
    """A query that an agent asked for a person: `epsilon` is what would be booked, None if it has δ or ρ."""

    id: str
    analyst: str
    agent: str
    dataset: str
    kind: str
    query: Mapping[str, Any]
    cost: str
    epsilon: str | None
    state: State
    created: str
    expires: str
    decided_by: str | None = None
    decided: str | None = None

    @property
    def waits(self) -> bool:
        """Whether a person can still decide it."""
        return self.state == "waiting"

    def to_json(self) -> dict[str, Any]:
        names = ("id", "analyst", "agent", "dataset", "kind", "query", "cost", "epsilon", "state")
        more = ("created", "expires", "decided_by", "decided")
        return {name: getattr(self, name) for name in (*names, *more)}

    @classmethod
    def of(cls, row: Mapping[str, Any], hours: float) -> Self:
        body, state = json.loads(row["body"]), cls.state_of(row, hours)
        columns = {name: row[name] for name in ("id", "analyst", "agent", "dataset", "kind", "epsilon", "created")}
        decided = {name: row[name] for name in ("decided_by", "decided")}
        return cls(**columns, **decided, query=body["query"], cost=body["cost"], state=state, expires=_end(row, hours))

    @staticmethod
    def state_of(row: Mapping[str, Any], hours: float) -> State:
        """The state now: a question that no person decided in time has expired."""
        state: State = row["state"]
        return "expired" if state == "waiting" and now() >= _end(row, hours) else state


class Agents:
    """The queries that agents ask of one service, shared by its workers."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @property
    def rule(self) -> AgentRule:
        """What the steward allows; a refusal where agents are off."""
        if self._core.settings.agents is None:
            raise Refusal("forbidden", "Agents are off here. The steward turns them on with [agents] in the settings.")
        return self._core.settings.agents

    def propose(
        self, caller: Caller, agent: str, dataset: str, query: Query[Any, Any], key: str | None = None
    ) -> AgentQuestion:
        """Note a query before it is charged: allowed by the rule, or waiting for a person.

        It refuses what a person may not confirm either: what the budget does not cover, what would be mostly noise, and
        output-constrained answers. Under a key used before, the same query is the same question.
        """
        rule, core = self.rule, self._core
        if query.cost().kind is Kind.OUTPUT_CONSTRAINED:
            raise Refusal("forbidden", "Output-constrained answers are not for agents. Ask in mode dp.")
        if query.is_delivered_once:
            raise Refusal("forbidden", "A list of names goes to a person and to nobody else. Ask for it yourself.")
        row = self._row(caller, agent, dataset, query, key)
        known = core.records.find(AGENT_QUESTIONS, row["id"])
        if known is not None:
            return self._same(known, row)
        quoted = core.quote(caller, dataset, query)
        if quoted.obstacle is not None:
            raise quoted.refusal()
        require_useful(core.plan(caller, dataset, query))
        row |= {"account": quoted.account.name, "epsilon": _plain_epsilon(quoted)}
        self._require_quota(rule, row)
        if not self._add_allowed(rule, row):
            self._require_waiting_room(caller)
            waiting = {**row, "state": "waiting"}
            core.records.add_if(AGENT_QUESTIONS, waiting, lambda rows: _fits_quota(rule, rows, row))
        return self._same(self._stored(row["id"]), row)

    def admit(self, caller: Caller, question: AgentQuestion) -> Admission:
        """Admit a query that the rule or a person has allowed, as it was noted."""
        if question.state not in ("allowed", "confirmed"):
            raise Refusal("forbidden", f"The question is {question.state}. Nothing was charged.")
        query = fill(self._core.question(question.kind), question.query)
        return self._core.admit(caller, question.dataset, query, question.id, agent=question.agent)

    def find(self, caller: Caller, key: str) -> AgentQuestion:
        """Return a question that an agent asked for the caller; a steward finds any."""
        row = self._core.records.find(AGENT_QUESTIONS, key)
        if row is None or not (caller.reads_all or row["analyst"] == caller.name):
            raise Refusal("not-found", "There is no question of an agent with this id, or it is not yours.")
        return AgentQuestion.of(row, self.rule.hours)

    def all(self, caller: Caller) -> list[AgentQuestion]:
        """Return the questions of the caller's agents, latest first; of all agents for a steward or an auditor."""
        hours, wanted = self.rule.hours, {} if caller.reads_all else {"analyst": caller.name}
        rows = self._core.records.all(AGENT_QUESTIONS, **wanted)
        return [AgentQuestion.of(row, hours) for row in reversed(rows)]

    def decide(self, caller: Caller, key: str, state: Literal["confirmed", "declined"]) -> AgentQuestion:
        """Confirm or decline a question, as the person it is asked for, or as a steward."""
        if caller.is_agent or caller.is_auditor:
            raise Refusal("forbidden", "Only the person whom the agent asks for, or a steward, may decide this.")
        question = self.find(caller, key)
        changes = {"decided_by": caller.name, "decided": now()}
        if not question.waits or not self._core.records.swap(
            AGENT_QUESTIONS, key, {"state": "waiting"}, state=state, **changes
        ):
            raise Refusal("conflict", "The question was decided already, or has expired. Nothing was changed.")
        self._core.acts.note(f"question of an agent {state}", caller, f"{key} of {question.agent}")
        return self.find(caller, key)

    def _row(self, caller: Caller, agent: str, dataset: str, query: Query[Any, Any], key: str | None) -> dict[str, Any]:
        """The row of a question. An agent's key stands for one id, so that of two calls at once one is charged."""
        owner = "\n".join((caller.name, caller.token, agent, key or ""))
        stated = {"query": entries_of(query), "cost": str(query.cost().text)}
        return {
            "id": new_id() if key is None else hashlib.sha256(owner.encode()).hexdigest()[:24],
            "analyst": caller.name,
            "token": caller.token,
            "agent": agent,
            "dataset": self._core.find(caller, dataset).name,
            "kind": query.kind,
            "body": canonical(stated),
        }

    def _same(self, stored: Mapping[str, Any], row: Mapping[str, Any]) -> AgentQuestion:
        if any(stored[name] != row[name] for name in ("dataset", "kind", "body")):
            raise Refusal("key-conflict", "The key stands for another question. Use a new one.")
        return AgentQuestion.of(stored, self.rule.hours)

    def _stored(self, key: str) -> Mapping[str, Any]:
        row = self._core.records.find(AGENT_QUESTIONS, key)
        if row is None:
            raise _over_quota()
        return row

    def _add_allowed(self, rule: AgentRule, row: Mapping[str, Any]) -> bool:
        """Note the query as allowed if the day's sum stays within the rule. Sum and note are one transaction, so that
        of many calls at once none spends what another has."""
        if row["epsilon"] is None or not rule.unconfirmed:
            return False
        today = now()[:10]

        def fits(rows: Sequence[Mapping[str, Any]]) -> bool:
            allowed = [one for one in rows if one["state"] == "allowed" and one["created"][:10] == today]
            return _within(rule.unconfirmed, allowed, row) and _fits_quota(rule, rows, row)

        return self._core.records.add_if(AGENT_QUESTIONS, {**row, "state": "allowed"}, fits)

    def _require_quota(self, rule: AgentRule, row: Mapping[str, Any]) -> None:
        if rule.quota is not None and row["epsilon"] is None:
            raise Refusal("forbidden", "Agents have a quota in ε here. Ask with ε alone, without δ or ρ.")

    def _require_waiting_room(self, caller: Caller) -> None:
        if sum(question.waits for question in self.all(replace(caller, scope="analyst"))) >= MAX_WAITING:
            raise Refusal(
                "too-many-questions",
                f"{MAX_WAITING} questions of your agents wait for you, which is the maximum. Decide some of them.",
            )


def clean_agent_name(reported: str) -> str:
    """Return the name that a client reports of itself, as the ledger may keep it.

    >>> clean_agent_name("Claude Desktop"), clean_agent_name("患者"), clean_agent_name("a/b-c")
    ('claude_desktop', 'agent', 'a_b_c')
    """
    name = _OTHER_LETTERS.sub("_", reported[:200].casefold()).strip("_")
    return name[:MAX_NAME_LETTERS] or "agent"


def _end(row: Mapping[str, Any], hours: float) -> str:
    return (moment().fromisoformat(row["created"]) + timedelta(hours=hours)).isoformat(timespec="milliseconds")


def _plain_epsilon(quoted: Quote) -> str | None:
    """The ε that would be booked, where that is all of the cost."""
    price = quoted.price
    return None if price is None or price.epsilon is None or price.delta else str(price.epsilon)


def _fits_quota(rule: AgentRule, rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> bool:
    """Whether a row fits into the quota, beside all that was or can still be charged."""
    if rule.quota is None:
        return True
    counted = [one for one in rows if AgentQuestion.state_of(one, rule.hours) in ("allowed", "waiting", "confirmed")]
    return _within(rule.quota, counted, row)


def _within(most: Fraction, rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> bool:
    """Whether the ε of a row fits beside that of the rows of the same analyst's agents on the same account."""
    mine = [one for one in rows if (one["analyst"], one["account"]) == (row["analyst"], row["account"])]
    amounts = [Fraction(one["epsilon"]) for one in mine if one["epsilon"] is not None]
    return sum(amounts, start=Fraction(row["epsilon"] or 0)) <= most


def _over_quota() -> Refusal:
    return Refusal(
        "forbidden", "The quota of agents on this data set is used up. Nothing was charged. Ask the steward."
    )
