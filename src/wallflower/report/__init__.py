"""Releases and plans for people: cards in notebooks, HTML reports, matplotlib figures. Nothing here sees data.

`releases`  cards and HTML pages of releases
`plans`     plans as text, cards, tables and pages
`plots`     matplotlib figures of `.plot()` and `--plot`
`scores`    figures of a detector: scores, contributions, maps
`tradeoff`  an HTML page to choose ε by
"""

from wallflower.report.releases import card, figure, page, write, write_one

__all__ = ["card", "figure", "page", "write", "write_one"]
