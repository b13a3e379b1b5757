"""Every page and every role: what is sent to it, and which status each of them gets."""

from __future__ import annotations

from page_client import COUNT

from wallflower.privacy import Loss
from wallflower.queries.watch import Watch

ROLES = ("anonymous", "analyst", "other", "auditor", "steward")


def callers(status: int, other: int | None = None, anonymous: int = 303, auditor: int | None = None) -> dict[str, int]:
    known = {"anonymous": anonymous, "analyst": status, "other": other or status, "steward": status}
    return known | {"auditor": auditor or status}


def stewards(status: int) -> dict[str, int]:
    return {"anonymous": 303, "analyst": 403, "other": 403, "auditor": 403, "steward": status}


def readers(status: int) -> dict[str, int]:
    return stewards(status) | {"auditor": status}


GRANT = {"epsilon": "3", "reason": "study 12"}
WATCH = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.01"))
COLUMN = {"c0-name": "a", "c0-kind": "number", "c0-low": "0", "c0-high": "30"}
TABLE: dict[tuple[str, str], tuple[dict[str, str] | None, dict[str, int]]] = {
    ("GET", "/sign-in"): (None, callers(303, anonymous=200)),
    ("GET", "/sign-in/directory"): (None, callers(404, anonymous=404)),  # these settings have no provider
    ("GET", "/sign-in/callback"): (None, callers(401, anonymous=401)),
    ("GET", "/sign-in/confirmed"): (None, callers(200)),
    ("GET", "/account"): (None, callers(404)),  # a token has no account
    ("POST", "/account"): ({"scope": "analyst", "days": "1"}, callers(404)),
    ("POST", "/account/revoke"): ({"token": "none"}, callers(404)),
    ("GET", "/proposals"): (None, readers(200)),
    ("POST", "/proposals/{proposal}/confirm"): ({}, stewards(404)),  # there is none
    ("POST", "/proposals/{proposal}/decline"): ({}, stewards(404)),
    ("GET", "/acts"): (None, readers(200)),
    ("GET", "/acts/csv"): (None, readers(200)),
    ("GET", "/acts/json"): (None, readers(200)),
    ("POST", "/people/{person}/disable"): ({}, stewards(404)),  # nobody signed in
    ("POST", "/people/{person}/enable"): ({}, stewards(404)),
    ("GET", "/second-factor"): (None, callers(200)),
    ("POST", "/second-factor"): ({}, callers(403)),  # its secret comes from no page of ours
    ("GET", "/"): (None, callers(200)),
    ("GET", "/datasets/{dataset}"): (None, callers(200)),
    ("GET", "/datasets/{dataset}/plan/{kind}"): (None, callers(200)),
    ("POST", "/datasets/{dataset}/plan/{kind}"): (COUNT, callers(303, auditor=403)),
    ("GET", "/datasets/{dataset}/confirm/{kind}"): (None, callers(422)),  # nothing is asked
    ("POST", "/datasets/{dataset}/confirm/{kind}"): (COUNT, callers(303, auditor=403)),
    ("POST", "/datasets/{dataset}/ask/{kind}"): (COUNT, callers(303, auditor=403)),
    ("GET", "/jobs/{job}"): (None, callers(200, other=404)),
    ("GET", "/releases"): (None, callers(200)),
    ("GET", "/releases/{number}"): (None, callers(200, other=404)),
    ("GET", "/releases/{number}/json"): (None, callers(200, other=404)),
    ("GET", "/releases/{number}/arrow"): (None, callers(200, other=404)),
    ("GET", "/releases/{number}/csv"): (None, callers(200, other=404)),
    ("GET", "/releases/{number}/picture/{form}"): (None, callers(404)),  # this is none of its forms
    ("GET", "/public"): (None, callers(200, anonymous=200)),
    ("GET", "/public.json"): (None, callers(200, anonymous=200)),
    # nothing is public here: test_publications.py has what is
    **{
        ("GET", f"/public/{{number}}{suffix}"): (None, callers(404, anonymous=404))
        for suffix in ("", ".json", ".csv", ".svg", "/embed")
    },
    ("GET", "/releases/{number}/publish"): (None, stewards(200)),
    ("POST", "/releases/{number}/publish"): ({}, stewards(303)),
    ("GET", "/releases/{number}/withdraw"): (None, stewards(200)),
    ("POST", "/releases/{number}/withdraw"): ({"reason": "wrong year"}, stewards(303)),
    ("GET", "/datasets/{dataset}/budget"): (None, readers(200)),
    ("POST", "/datasets/{dataset}/budget/grants"): (GRANT, stewards(303)),
    ("POST", "/datasets/{dataset}/budget/quotas"): ({"epsilon": "0.1", "analyst": "bo"}, stewards(303)),
    ("POST", "/datasets/{dataset}/budget/declaration"): ({"reason": "unchanged"}, stewards(303)),
    ("POST", "/datasets/{dataset}/budget/constrained"): ({"epsilon": "0", "reason": "closed"}, stewards(303)),
    ("POST", "/datasets/{dataset}/budget/naming"): ({"detector": "1", "most": "0", "reason": "closed"}, stewards(422)),
    ("GET", "/tokens"): (None, readers(200)),
    ("POST", "/tokens"): ({"name": "new", "scope": "analyst", "days": "1"}, stewards(303)),
    ("GET", "/tokens/{token}/revoke"): (None, stewards(200)),
    ("POST", "/tokens/{token}/revoke"): ({}, stewards(303)),
    ("GET", "/tokens/{token}/factor"): (None, stewards(200)),
    ("POST", "/tokens/{token}/factor"): ({}, stewards(404)),  # it has none
    ("GET", "/ledger"): (None, readers(200)),
    ("POST", "/datasets/{dataset}/budget/review/{form}"): (GRANT, stewards(200)),
    ("GET", "/about"): (None, callers(200, anonymous=200)),
    ("GET", "/accessibility"): (None, callers(200, anonymous=200)),
    ("GET", "/privacy"): (None, callers(200, anonymous=200)),
    ("GET", "/api"): (None, callers(200, anonymous=200)),
    ("POST", "/language"): ({"language": "en"}, callers(303, anonymous=303)),
    ("GET", "/logo"): (None, callers(404, anonymous=404)),
    ("GET", "/streams"): (None, callers(200)),
    ("GET", "/streams/{watch}"): (None, callers(200, other=404)),
    ("POST", "/streams/{watch}/observations"): ({"observations": "t\n0.5"}, callers(303, other=404, auditor=403)),
    ("POST", "/datasets/{dataset}/watches/{kind}"): (COUNT, callers(422, auditor=403)),  # it is not asked of a stream
    ("GET", "/register"): (None, stewards(200)),
    ("POST", "/register"): ({"name": "<new>", **COLUMN}, stewards(422)),
    ("GET", "/datasets/{dataset}/access"): (None, readers(200)),
    ("POST", "/datasets/{dataset}/access"): ({"analyst": "*"}, stewards(303)),
    ("GET", "/datasets/{dataset}/retire"): (None, stewards(200)),
    ("POST", "/datasets/{dataset}/retire"): ({}, stewards(409)),  # it stands in the settings
    ("POST", "/register/draft"): ({"name": "new", "source": "ward.csv"}, stewards(200)),
    ("POST", "/register/rehearsal"): ({"name": "new", "c0-name": "a", "c0-kind": "text"}, stewards(422)),
    ("GET", "/spending"): (None, readers(200)),
    ("GET", "/ledger/csv"): (None, readers(200)),
    ("GET", "/ledger/json"): (None, readers(200)),
    ("GET", "/releases.csv"): (None, callers(200)),
    ("GET", "/releases.json"): (None, callers(200)),
    ("GET", "/requests"): (None, callers(200)),
    ("GET", "/requests/{request}"): (None, callers(200, other=404)),
    ("POST", "/requests/{request}/decline"): ({"word": "not this year"}, stewards(303)),
    ("GET", "/datasets/{dataset}/request"): (None, callers(200)),
    ("POST", "/datasets/{dataset}/request"): ({"reason": "study 12"}, callers(303, auditor=403)),
    ("POST", "/sign-in"): ({"token": "wf_none"}, dict.fromkeys(ROLES, 401)),
}
