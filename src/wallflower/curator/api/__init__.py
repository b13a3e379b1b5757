"""The service for programs: routes under /v1, who calls them, what they take and give.

`routes`                   what can be called
`description`              what OpenAPI says of it: answers, examples, problems
`gate`, `callers`          what stands before every route: limits, and whose token it is
`bodies`                   from the fields of a question to the body of a request, and back
`views`, `files`           how things look in JSON, and a release in other forms
`compression`              what may be compressed on its way out
"""
