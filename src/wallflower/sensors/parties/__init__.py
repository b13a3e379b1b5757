"""The parties of a sensor stream as programs that talk over a network: devices, two servers and the owner.

`trust/`    who is who: certificates of one authority, and the parameter set that the owner signed
`stores/`   what a party remembers: a SQLite file of its own, durable before anything is told
`roles/`    what each party does in a window: `device` finishes and pays for frames before the first is sent, `intake`
            takes them in, `analyst` and `correction` judge them together, `owner` says what was found
`web`, `client`, `startup`   HTTP, TLS and processes
`demo`      all of it on one machine
"""
