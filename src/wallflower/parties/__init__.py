"""The parties of a sensor stream as programs that talk over a network: devices, two servers and the owner.

`keys`, `parameter_file`   who is who: certificates of one authority, and the parameter set that the owner signed
`database`, `windows`      what a party remembers: a SQLite file of its own, durable before anything is told
`outbox`, `device`         a sensor: frames are finished and paid for before the first is sent
`intake`, `server`, `analyst`, `correction`, `owner`   what each party does in a window, step by step
`party`, `startup`, `web`, `client`   processes, HTTP and TLS
`owner_page`, `demo`       what the owner sees, and all of it on one machine
"""
