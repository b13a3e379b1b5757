"""The service for people: pages under /ui.

`app`                                     all pages as one application, with its static files
`visit`, `sessions`                       one request: who sent it, with which session, and how it is answered
`sign_in`, `openid`                       signing in with a token or with the account of an organisation
`datasets`, `planner`, `releases`, `lists`, `requests`, `streams`    pages for everyone with a token
`budgets`, `spending`, `registration`, `tokens`                      pages for stewards and auditors
`reference`                               pages that are open to everyone
`fields`, `choices`                       a query as a web form, and a form as a query
`display`                                 pictures, numbers and plans of releases
`budget_text`, `language`                 the state of a budget as text, and the languages of the pages
"""
