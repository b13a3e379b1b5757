"""Who is near whom, and what follows for counts of outliers: shared by the questions that ask who stands apart.

`pairs` finds the pairs within a radius, `limits` knows what can be said without data, `flow` the outlier mass,
`extension` and `programme` the Lipschitz extension of the number of inliers, `noisy_count` the private number of
outliers made from it.
"""
