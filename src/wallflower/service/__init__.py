"""The HTTP service: private queries for analysts who do not hold the data, and a dashboard.

`settings`         what the person who runs it decides before it starts
`core`             what the service does and stores, without HTTP
`api`              routes under /v1, and the middleware before every route
`pages`            the dashboard
`app`, `server`    the application, and the process that listens
`worker`           the entry points of worker processes
`demo`             a temporary service on public data
"""
