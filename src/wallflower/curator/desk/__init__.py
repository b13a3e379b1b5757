"""What the service does and remembers, without HTTP.

`desk`                all that can be done, as plain functions: the front door
`access`              who may call: tokens, second factors, and what stewards did
`datasets`            where the data sets are kept, how callers see them, how one is registered
`questions`           from what public facts say of a question to its answer: outlines, turns, jobs, watches
`budgets`             what was spent when, what an analyst sees of others, requests for more
`records`, `clock`    what is remembered beside the ledger, and what time it is
`problems`            refusals, as everybody is told of them
`logs`, `metrics`     what whoever runs the service sees of it
"""
