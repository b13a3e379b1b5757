"""The curator: private questions over HTTP, for people who do not hold the data.

`settings`         what the steward decides before it starts
`office`           whose service it is, as its pages say
`desk`             what can be done and what is remembered, without HTTP
`api`              routes for programs, and what stands before every route
`pages`            pages for a browser
`app`, `server`    all of it as one application, and as a process that listens
`demo`             a service for the moment, on public data
"""
