"""Pictures: one vocabulary, one SVG renderer for pages, cards and reports, and the colours of all of them.

`picture`   what a query says is drawn: bars, a dot with its interval, a curve, a heat map and so on
`svg`       every picture as SVG
`charts`    charts of plans, of spending and of decisions over time, as SVG
`canvas`    lines, texts, marks and scales that the two are made of
`cards`     the frame, the style and the tables of cards in notebooks and reports
`palette`   colours, and the style of SVG and of matplotlib

matplotlib draws only what `.plot()` and `--plot` ask for (`wallflower.report.figures`).
"""
