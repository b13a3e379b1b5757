"""The service for people: pages under /ui.

`analyst`               pages for everybody with a token
`steward`               pages for stewards
`public`                pages for everybody
`visitors`              one visit: who came, with which session, from where, and with which token
`words`                 what pages say: languages, templates in each, where a budget stands
`figures`               what draws
`forms`                 a question as a web form, and a form as a question
`mount`, `assets`       all pages as one application, and the files that they load
"""
