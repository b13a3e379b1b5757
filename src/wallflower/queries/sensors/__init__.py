"""Which readings of a stream are outliers, when every reading is perturbed before it leaves its sensor.

A sensor clips a reading to a public box and adds noise on a public grid (`device`). Two servers of different operators
find the outliers together: the analyst holds perturbed readings, the correction server holds what corrects them, and
the owner of the stream gets the result. There are three ways to correct, the first that of [Boe17]:

`paper`     the correction server learns by how far noise moved each distance (`correction`, after `dbscan`)
`grid`      the same, but the analyst sends coarse distances and one comparison decides (`grid`)
`exact`     each server holds one key of a comparison and learns nothing beyond the perturbed reading (`comparison`);
            where the threshold is not known beforehand, a noisy histogram shows one (`comparison.threshold`)

Where the threshold is known beforehand, mode `direct` needs no servers: the sensor seals the bit to the owner. What is
promised, and to whom, is in proof.md.
"""
