"""Who is near whom, and what follows for counts of outliers: shared by the questions that ask who stands apart.

`pairs` finds the pairs within a radius, `limits` knows what can be said without data, `flow` the outlier mass,
`extension` the Lipschitz extension of the number of inliers, `noisy_count` the private number of outliers made from it.
The extension is a linear programme: `region` says which part of it must be solved, `programme/` solves a contest with a
certificate, and its `interior` and `fronts` do so fast. `tiles/` counts where an engine keeps the records.
"""
