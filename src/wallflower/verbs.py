"""What a data set can be asked, as methods that editors complete and type checkers read.

Written by `make verbs` from the list of questions; do not edit it by hand. Nothing here runs: the methods that do are
made from the same list in `dataset`, those of plugins too.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from wallflower.privacy import Exact, Loss
from wallflower.queries.explain.detectors import Detector
from wallflower.queries.watch.seasons import ReleasedBaseline, Seasons
from wallflower.query import ReleaseLike
from wallflower.query.plan import Plan
from wallflower.release.answer import Release
from wallflower.schema import Schema


class Questions:
    """Each question as a method that answers and pays."""

    def count(
        self,
        *,
        neighbours: int,
        radius: float | None = None,
        share: Exact | None = None,
        columns: tuple[str, ...] | None = None,
        mechanism: Literal["extension", "global", "smooth"] = "extension",
        slack: int | None = None,
        normalise: bool = True,
        metric: Literal["euclidean", "manhattan", "chebyshev", "haversine"] | Any = "euclidean",
        scale: int | ReleaseLike | None = None,
        interval: Literal["noise", "two-sided"] = "noise",
        by: tuple[str, ...] | None = None,
        public_groups: bool = False,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        key: str | None = None,
        anyway: bool = False,
    ) -> Release[Any]:
        """How many outliers are there?

        neighbours     with fewer than this many others near, a record is an outlier
        radius         records at most this far apart (root of the mean squared difference) are near
        share          instead of a radius: draw the one at which so many are outliers, such as 2%, for half the loss
        columns        the columns distances are taken over; all number columns unless given
        mechanism      extension: noise independent of the dimension; global, smooth: the paper's, done right:
                       extension, global, smooth
        slack          degree cap: how many others one record can support; a lower one means less noise and more
                       overcounting (default: by a rule)
        normalise      distances per column (as in Okada et al. 2015) rather than plain Euclid
        scale          divide every column by its spread: the ledger entry of a release of scale, or the release itself
        epsilon        privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta          δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho            zero-concentrated privacy loss ρ, instead of ε and δ
        loss           the same as a Loss

        With mechanism extension:
        metric         distance of two records; haversine: km between latitudes and longitudes in degrees; in Python
                       also a function of two records: euclidean, manhattan, chebyshev, haversine
        interval       noise: only the upper end is proved; two-sided: both ends are, with half of the loss for each:
                       noise, two-sided
        by             count every group of these label columns, one or two, by itself: one price for all groups

        With by:
        public_groups  the schema states that groups are public: exact sizes, and about half the noise
        """
        raise NotImplementedError

    def subspaces(
        self,
        *,
        neighbours: int,
        radius: float,
        top: int = 1,
        size: int | None = None,
        upto: int | None = None,
        among: tuple[tuple[str, ...], ...] | None = None,
        columns: tuple[str, ...] | None = None,
        score: Literal["mass", "count"] = "mass",
        mechanism: Literal["permute-and-flip", "exponential"] | None = None,
        counts: bool = False,
        share: Exact = Fraction(1, 2),
        verify: bool = True,
        gap: float | None = None,
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        key: str | None = None,
        anyway: bool = False,
    ) -> Release[list[list[str]] | list[dict[str, Any]]]:
        """In which attributes do the outliers show?

        neighbours  with fewer than this many others near, a record is an outlier
        radius      records at most this far apart (root of the mean squared difference) are near
        top         how many subspaces to release, best first; they share the loss
        size        look at all subspaces of this many columns
        upto        look at all subspaces of up to this many columns; default: at all there are
        among       look at these subspaces only
        columns     the columns subspaces are made of; all number columns unless given
        score       mass: a graded count that one record moves by 2 at most; count: the paper's, needs far more loss:
                    mass, count
        mechanism   how to choose; default: whichever promises more: permute-and-flip, exponential
        counts      also count the outliers in each, from the same loss
        share       with counts: the part of the loss that goes into the choice
        verify      spend a quarter of ε on whether the named subspaces stand out from the others
        gap         for the plan only: by how many records the best stand out; default: 2 % of them
        normalise   distances per column (as in Okada et al. 2015) rather than plain Euclid
        scale       divide every column by its spread: the ledger entry of a release of scale, or the release itself
        epsilon     privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta       δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho         zero-concentrated privacy loss ρ, instead of ε and δ
        loss        the same as a Loss
        """
        raise NotImplementedError

    def watch(
        self,
        *,
        threshold: float | None = None,
        kappa: float | None = None,
        level: Literal["event", "person", "paper"] = "event",
        statistic: Literal["sum", "weighted", "mahalanobis", "max"] = "sum",
        low: float | None = None,
        high: float | None = None,
        change: float | None = None,
        centre: float | None = None,
        variance: float | None = None,
        outlier_from: float | None = None,
        outlier_share: float | None = None,
        columns: tuple[str, ...] | None = None,
        time: str | None = None,
        baseline: Seasons | ReleasedBaseline | int | None = None,
        relearn: int | None = None,
        relearn_share: Exact = Fraction(1, 5),
        weights: tuple[float, ...] | None = None,
        mean: tuple[float, ...] | None = None,
        covariance: tuple[tuple[float, ...], ...] | None = None,
        cutoff: int = 10,
        monotone: bool = False,
        adaptive: bool = False,
        window: int | None = None,
        steps: int | None = None,
        scores: bool = False,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        key: str | None = None,
        anyway: bool = False,
    ) -> Release[dict[str, Any]]:
        """When does an outlier occur?

        threshold      flag observations whose statistic is at least this far from its centre
        kappa          instead of a threshold: flag from this many standard deviations of the statistic on; needs its
                       public variance, a covariance or a baseline
        level          who is protected: one entry of one observation, or one person throughout; paper: as printed:
                       event, person, paper
        statistic      what is measured of an observation: sum, weighted, mahalanobis, max
        low            public lower bound of every entry; default: the schema's, of each column
        high           public upper bound of every entry; default: the schema's, of each column
        change         assume that an entry changes by no more; default: the bounds enforce it
        centre         public mean of the sum; default: that of `mean`, or 0
        variance       public variance of the sum, for the plan
        outlier_from   for the plan: from this distance on it is an outlier; default: the threshold
        outlier_share  for the plan: the share of observations that are outliers; default: as the variance has it
        columns        the columns of an observation; all number columns unless given
        time           the column of times, public by the schema: flagged ones are told by it too
        baseline       what `baseline` released by phase, or its ledger entry: entries are judged in spreads of theirs
        relearn        with a baseline by phase: learn it anew of every so many observations, for the next ones
        relearn_share  with relearn: the part of the loss that learns, once for all
        mean           public mean of each column
        covariance     public covariance of the columns, row by row
        epsilon        privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta          δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho            zero-concentrated privacy loss ρ, instead of ε and δ
        loss           the same as a Loss

        With statistic weighted:
        weights        one for each column

        With level person:
        cutoff         after so many flags the watch is exhausted
        monotone       contributions are all of one sign; half the noise, both sides
        adaptive       flags far beyond the threshold cost half
        window         protect any so many consecutive observations, endlessly
        steps          with δ or ρ: watch so many observations with Gaussian noise

        With level event:
        scores         release a noisy score too, at no further cost
        """
        raise NotImplementedError

    def explain(
        self,
        *,
        record: str,
        metric: str,
        context: tuple[str, ...],
        domain: Schema,
        size: int | None = None,
        identifier: str | None = None,
        detector: str | Detector = "tukey",
        mode: Literal["dp", "ocdp"] | None = None,
        top: int = 1,
        utility: Literal["population", "overlap"] | Any = "population",
        near: str | None = None,
        search: Literal["direct", "best-first", "uniform", "walk", "dfs", "bfs", "guided"] | None = None,
        samples: int = 50,
        start: str | None = None,
        unseen: bool = False,
        doubt: Exact = Fraction(1, 10),
        clear: float = 0.1,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        key: str | None = None,
        anyway: bool = False,
    ) -> Release[list[dict[str, str]]]:
        """Why is this record an outlier?

        record      which record: its identifier, or its row counted from 0
        metric      the number column in which the record is unusual
        context     the columns whose values make a context
        domain      their public values: categories or edges in a .toml or .json file (wallflower data domain)
        size        public bound on the number of records; default: `rows` of the domain file
        identifier  the column that `record` is looked up in; default: `record` is a row
        detector    tukey, distance, bins or clamped-grubbs, with a margin; grubbs, histogram, lof or pyod, without;
                    settings as in lof:k=20,threshold=1.5
        mode        dp: differential privacy, the default with a margin; ocdp: the paper's weaker relation: dp, ocdp
        top         how many contexts to release; they share the loss
        clear       for the plan only: by which share of a context the record stands out, if it can
        epsilon     privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta       δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho         zero-concentrated privacy loss ρ, instead of ε and δ
        loss        the same as a Loss

        With mode ocdp:
        utility     prefer contexts with many records, or much in common with `near`: population, overlap
        near        the public context that overlap counts, as bits
        search      how to search; default: by what is public: direct, best-first, uniform, walk, dfs, bfs, guided
        samples     how many contexts uniform, walk, dfs and bfs visit
        start       where walk, dfs and bfs start, as bits; default: a valid context
        unseen      I chose `start` without looking at the data, which it needs

        With mode dp:
        doubt       part of the loss that decides whether to say none; 0: never
        """
        raise NotImplementedError

    def scale(
        self,
        *,
        columns: tuple[str, ...] | None = None,
        units: tuple[tuple[str, ...], ...] | None = None,
        location: bool = False,
        subset: bool = False,
        verify: bool = True,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        key: str | None = None,
        anyway: bool = False,
    ) -> Release[dict[str, Any]]:
        """How wide is each column?

        columns   the columns to measure; all number columns unless given
        units     columns of one unit, which share one spread and cost as much as one column
        location  release the median of each column too, for bounds and for a watch, with half of the loss
        subset    with more columns than the loss allows for, measure a random part of them, publicly drawn
        verify    spend an eighth of ε on the share of equal pairs of each column, which spreads ignore
        epsilon   privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta     δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho       zero-concentrated privacy loss ρ, instead of ε and δ
        loss      the same as a Loss
        """
        raise NotImplementedError

    def radius(
        self,
        *,
        neighbours: int,
        share: Exact,
        columns: tuple[str, ...] | None = None,
        smallest: float | None = None,
        largest: float | None = None,
        slack: int | None = None,
        graded: bool = False,
        normalise: bool = True,
        verify: bool = True,
        scale: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        key: str | None = None,
        anyway: bool = False,
    ) -> Release[dict[str, Any]]:
        """At which radius is that share of the records outliers?

        neighbours  with fewer than this many others near, a record is an outlier
        share       the wanted share of outliers among the records: 1%, 0.01 or 1/100
        columns     the columns distances are taken over; all number columns unless given
        smallest    the smallest radius that is looked at; default: 1/16
        largest     the largest radius that is looked at; default of both: 16, with wider steps from 4 on
        slack       degree cap: how many others one record can support; a lower one means less noise and more
                    overcounting (default: by a rule)
        graded      the share of the outlier mass, which needs less loss, instead of outliers
        normalise   distances per column (as in Okada et al. 2015) rather than plain Euclid
        verify      spend a quarter of ε on the number of outliers at the drawn radius, which shows the share
        scale       divide every column by its spread: the ledger entry of a release of scale, or the release itself
        epsilon     privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta       δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho         zero-concentrated privacy loss ρ, instead of ε and δ
        loss        the same as a Loss
        """
        raise NotImplementedError

    def profile(
        self,
        *,
        neighbours: int,
        radii: tuple[float, ...] | None = None,
        shares: tuple[str, ...] | None = None,
        columns: tuple[str, ...] | None = None,
        slack: int | None = None,
        graded: bool = False,
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        key: str | None = None,
        anyway: bool = False,
    ) -> Release[dict[str, Any]]:
        """How many outliers are there at every radius?

        neighbours  with fewer than this many others near, a record is an outlier
        radii       the radii, rising; left out, and without shares: 12 from 0.18 to 8
        shares      find a radius for each of these shares of outliers instead: 1%, 0.01 or 1/100
        columns     the columns distances are taken over; all number columns unless given
        slack       degree cap: how many others one record can support; a lower one means less noise and more
                    overcounting (default: by a rule)
        graded      the outlier mass, which counts how many neighbours are lacking: half the error
        normalise   distances per column (as in Okada et al. 2015) rather than plain Euclid
        scale       divide every column by its spread: the ledger entry of a release of scale, or the release itself
        epsilon     privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta       δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho         zero-concentrated privacy loss ρ, instead of ε and δ
        loss        the same as a Loss
        """
        raise NotImplementedError

    def detector(
        self,
        *,
        contamination: Exact | None = None,
        columns: tuple[str, ...] | None = None,
        spreads: Literal["private", "schema"] = "private",
        scale: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        key: str | None = None,
        anyway: bool = False,
    ) -> Release[dict[str, Any]]:
        """Which records are unusual?

        contamination  the share of the records to flag, 2% or 0.02; default: scores, and no flags
        columns        the columns to look at; all number columns unless given
        spreads        where spreads come from: measured privately, or the schema's scales, for nothing: private, schema
        scale          divide every column by its spread: the ledger entry of a release of scale, or the release itself
        epsilon        privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta          δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho            zero-concentrated privacy loss ρ, instead of ε and δ
        loss           the same as a Loss
        """
        raise NotImplementedError

    def baseline(
        self,
        *,
        low: float | None = None,
        high: float | None = None,
        level: Literal["event", "person"] = "event",
        guess: float = 0.0,
        furthest: float | None = None,
        variance: float | None = None,
        columns: tuple[str, ...] | None = None,
        phase: Literal[
            "always",
            "hour-of-day",
            "half-hour-of-day",
            "day-of-week",
            "hour-of-week",
            "half-hour-of-week",
            "month-of-year",
            "day-of-year",
            "as-written",
        ]
        | None = None,
        time: str | None = None,
        change: float | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        key: str | None = None,
        anyway: bool = False,
    ) -> Release[dict[str, Any]]:
        """What is usual, as a whole or at each phase of a season?

        low       public lower bound of every entry; by phase, default: the schema's
        high      public upper bound of every entry; by phase, default: the schema's
        level     who is protected, as for the watch: event, person
        guess     public guess of the mean of the sum: the nearer, the better
        furthest  distances from the guess count as no more than this; default: as far as can be
        variance  public guess of the variance, for the plan; default: of entries anywhere in their bounds
        columns   the columns of an observation; all number columns unless given
        phase     learn centre and spread of every column at each phase; always: one phase; as-written: each time:
                  always, hour-of-day, half-hour-of-day, day-of-week, hour-of-week, half-hour-of-week, month-of-year,
                  day-of-year, as-written
        time      the column of times that phases are read off, public by the schema
        change    by phase: assume that an entry changes by no more; default: the bounds enforce it
        epsilon   privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta     δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho       zero-concentrated privacy loss ρ, instead of ε and δ
        loss      the same as a Loss
        """
        raise NotImplementedError

    def flags(
        self,
        *,
        detector: int | ReleaseLike,
        by: tuple[str, ...],
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        key: str | None = None,
        anyway: bool = False,
    ) -> Release[list[dict[str, Any]]]:
        """How many records of each group does a detector flag?

        detector  the ledger entry of a release of detector that was given a contamination, or the release
        by        one or two columns whose public labels make the groups
        epsilon   privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta     δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho       zero-concentrated privacy loss ρ, instead of ε and δ
        loss      the same as a Loss
        """
        raise NotImplementedError


class Plans:
    """Each question as a method that says what to expect, and spends nothing."""

    def count(
        self,
        *,
        neighbours: int,
        radius: float | None = None,
        share: Exact | None = None,
        columns: tuple[str, ...] | None = None,
        mechanism: Literal["extension", "global", "smooth"] = "extension",
        slack: int | None = None,
        normalise: bool = True,
        metric: Literal["euclidean", "manhattan", "chebyshev", "haversine"] | Any = "euclidean",
        scale: int | ReleaseLike | None = None,
        interval: Literal["noise", "two-sided"] = "noise",
        by: tuple[str, ...] | None = None,
        public_groups: bool = False,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of count."""
        raise NotImplementedError

    def subspaces(
        self,
        *,
        neighbours: int,
        radius: float,
        top: int = 1,
        size: int | None = None,
        upto: int | None = None,
        among: tuple[tuple[str, ...], ...] | None = None,
        columns: tuple[str, ...] | None = None,
        score: Literal["mass", "count"] = "mass",
        mechanism: Literal["permute-and-flip", "exponential"] | None = None,
        counts: bool = False,
        share: Exact = Fraction(1, 2),
        verify: bool = True,
        gap: float | None = None,
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of subspaces."""
        raise NotImplementedError

    def watch(
        self,
        *,
        threshold: float | None = None,
        kappa: float | None = None,
        level: Literal["event", "person", "paper"] = "event",
        statistic: Literal["sum", "weighted", "mahalanobis", "max"] = "sum",
        low: float | None = None,
        high: float | None = None,
        change: float | None = None,
        centre: float | None = None,
        variance: float | None = None,
        outlier_from: float | None = None,
        outlier_share: float | None = None,
        columns: tuple[str, ...] | None = None,
        time: str | None = None,
        baseline: Seasons | ReleasedBaseline | int | None = None,
        relearn: int | None = None,
        relearn_share: Exact = Fraction(1, 5),
        weights: tuple[float, ...] | None = None,
        mean: tuple[float, ...] | None = None,
        covariance: tuple[tuple[float, ...], ...] | None = None,
        cutoff: int = 10,
        monotone: bool = False,
        adaptive: bool = False,
        window: int | None = None,
        steps: int | None = None,
        scores: bool = False,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of watch."""
        raise NotImplementedError

    def explain(
        self,
        *,
        record: str,
        metric: str,
        context: tuple[str, ...],
        domain: Schema,
        size: int | None = None,
        identifier: str | None = None,
        detector: str | Detector = "tukey",
        mode: Literal["dp", "ocdp"] | None = None,
        top: int = 1,
        utility: Literal["population", "overlap"] | Any = "population",
        near: str | None = None,
        search: Literal["direct", "best-first", "uniform", "walk", "dfs", "bfs", "guided"] | None = None,
        samples: int = 50,
        start: str | None = None,
        unseen: bool = False,
        doubt: Exact = Fraction(1, 10),
        clear: float = 0.1,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of explain."""
        raise NotImplementedError

    def scale(
        self,
        *,
        columns: tuple[str, ...] | None = None,
        units: tuple[tuple[str, ...], ...] | None = None,
        location: bool = False,
        subset: bool = False,
        verify: bool = True,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of scale."""
        raise NotImplementedError

    def radius(
        self,
        *,
        neighbours: int,
        share: Exact,
        columns: tuple[str, ...] | None = None,
        smallest: float | None = None,
        largest: float | None = None,
        slack: int | None = None,
        graded: bool = False,
        normalise: bool = True,
        verify: bool = True,
        scale: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of radius."""
        raise NotImplementedError

    def profile(
        self,
        *,
        neighbours: int,
        radii: tuple[float, ...] | None = None,
        shares: tuple[str, ...] | None = None,
        columns: tuple[str, ...] | None = None,
        slack: int | None = None,
        graded: bool = False,
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of profile."""
        raise NotImplementedError

    def detector(
        self,
        *,
        contamination: Exact | None = None,
        columns: tuple[str, ...] | None = None,
        spreads: Literal["private", "schema"] = "private",
        scale: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of detector."""
        raise NotImplementedError

    def baseline(
        self,
        *,
        low: float | None = None,
        high: float | None = None,
        level: Literal["event", "person"] = "event",
        guess: float = 0.0,
        furthest: float | None = None,
        variance: float | None = None,
        columns: tuple[str, ...] | None = None,
        phase: Literal[
            "always",
            "hour-of-day",
            "half-hour-of-day",
            "day-of-week",
            "hour-of-week",
            "half-hour-of-week",
            "month-of-year",
            "day-of-year",
            "as-written",
        ]
        | None = None,
        time: str | None = None,
        change: float | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of baseline."""
        raise NotImplementedError

    def flags(
        self,
        *,
        detector: int | ReleaseLike,
        by: tuple[str, ...],
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of flags."""
        raise NotImplementedError
