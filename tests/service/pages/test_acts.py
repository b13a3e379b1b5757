"""The page of acts: filters, files, and nothing for analysts."""

from __future__ import annotations

import json
from pathlib import Path

from page_client import Browser, words
from served import run_service, settings


def test_acts_are_shown_filtered_and_exported(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as service:
        sue = service.token("sue", "steward")
        assert sue.post("/v1/datasets/ward/budget/grants", {"epsilon": "3", "reason": "study 12"}).status == 201
        assert sue.post("/v1/tokens", {"name": "=cmd", "scope": "analyst"}).status == 201
        auditor = Browser(service).sign_in(service.token("aude", "auditor").token)
        page = auditor.get("/ui/acts")
        assert page.status == 200
        assert all(part in words(page) for part in ("limit", "token issued", "sue"))
        rows = json.loads(auditor.get("/ui/acts/json?act=limit&by=sue").content)["acts"]
        assert [row["act"] for row in rows] == ["limit"]
        assert json.loads(auditor.get("/ui/acts/json?by=nobody").content)["acts"] == []
        assert b"token issued" in auditor.get("/ui/acts/csv").content
        assert "No matching actions." in words(auditor.get("/ui/acts?by=nobody"))
        last = sue.get("/v1/acts?last=1").json["acts"][0]
        assert [row["act"] for row in sue.get(f"/v1/acts?before={last['id']}").json["acts"]] == ["limit"]
        assert Browser(service).sign_in(service.token("ana").token).get("/ui/acts").status == 403
