"""What the service does and stores, without HTTP.

`facade`                  `Core`, the entry point of routes and pages
`access`                  tokens, people, second factors, OpenID, access to data sets, acts of stewards
`catalog`                 the data sets: registered, read, retired
`previews`, `jobs`        plans from public facts, and the queue in which queries are answered
`watches`                 watches over posted streams
`spending`                spending over time, and the redaction of other analysts
`requests`, `proposals`   requests for budget, and changes that a second steward confirms
`records`, `clock`        rows beside the ledger, and a clock that never goes back
`problems`                errors as problem documents [RFC 9457]
`logs`, `metrics`         log lines and Prometheus metrics
"""
