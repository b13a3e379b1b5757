"""The curator: private questions over HTTP, for people who do not hold the data.

`settings`, `shelf`    what is served: options, and data sets with their public schema
`records`, `tokens`    what the service remembers beside the ledger, and who may call
`desk`                 what can be done, as plain functions; routes and pages only call them
`jobs`, `watches`      long questions, and streams that are watched
`bodies`, `problems`, `gate`, `metrics`, `logs`   requests, refusals, limits, what is counted and written down
`routes`, `stewards`, `streams`, `app`, `serving`   HTTP
`sessions`, `visits`, `dashboard`, `pages`, `steward_pages`, `fields`, `charts`, `tradeoffs`   the pages for a browser
"""
