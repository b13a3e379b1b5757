"""What a record's company says about it, for every question that asks who stands apart.

`limits` knows what can be said without data, `flow` the outlier mass, `extension` and `programme` the Lipschitz
extension of the number of inliers, `noisy_count` the private number of outliers made from it.
"""
