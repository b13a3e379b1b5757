"""Find the pairs of near records, and count outliers by them: shared by all queries that go by distance.

`pairs` finds the pairs within a radius, `relations` compares by other metrics, `limits` has what is known without data,
`flow` the outlier mass, `extension` the Lipschitz extension of the number of inliers, `noisy_count` the private number
of outliers made from it, `radii` the curve over radii. The extension is a linear programme: `region` chooses the part
that must be solved, `transport` solves it with a certificate, by factorisations of `frontals`. `tiles` counts where an
engine keeps the records.
"""
