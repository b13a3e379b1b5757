"""The HTTP API under /v1.

`middleware`   limits on requests, hosts, proxies and compression
`callers`      authentication
`bodies`       request bodies
`models`       response bodies
`responses`    strict routes, rendering and the OpenAPI document
`routes`       the routes
"""
