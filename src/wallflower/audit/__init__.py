"""Attacks on mechanisms, on public made-up tables: can what they claim be refuted?"""

from wallflower.audit.attacks import (
    Attack,
    Finding,
    Floats,
    Records,
    Sampler,
    ScriptedNoise,
    Way,
    World,
    audit,
    audit_bound,
    audit_exact,
    least,
    most,
    replay_sampler,
)

__all__ = [
    "Attack",
    "Finding",
    "Floats",
    "Records",
    "Sampler",
    "ScriptedNoise",
    "Way",
    "World",
    "audit",
    "audit_bound",
    "audit_exact",
    "least",
    "most",
    "replay_sampler",
]
