"""What a data set can be asked, as methods that editors complete and type checkers read.

Written by `make verbs` from the list of questions; do not edit it by hand. Nothing here runs: the methods that do are
made from the same list in `dataset`, those of plugins too.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from wallflower.privacy import Exact, Loss
from wallflower.queries.detector.model import Layout
from wallflower.queries.explain.detectors.base import Detector
from wallflower.queries.explain.draws.utilities import Utility
from wallflower.queries.shift.shift import ShiftAnswer
from wallflower.queries.watch.seasons.seasons import ReleasedBaseline, SeasonalBaseline
from wallflower.queries.watch.watch import WatchAnswer
from wallflower.query.contract import ReleaseLike
from wallflower.query.plan import Plan
from wallflower.release.answer import Release
from wallflower.schema.schema import Schema


class Questions:
    """Each question as a method that answers and pays."""

    def count(
        self,
        *,
        neighbours: int,
        radius: float | None = None,
        share: Exact | None = None,
        mechanism: Literal["extension", "global", "smooth"] = "extension",
        metric: Literal["euclidean", "manhattan", "chebyshev", "haversine"] | Any = "euclidean",
        interval: Literal["noise", "two-sided"] = "noise",
        by: tuple[str, ...] | None = None,
        public_groups: bool = False,
        certify: bool = False,
        columns: tuple[str, ...] | None = None,
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        slack: int | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[int | list[dict[str, Any]]]:
        """How many outliers are there?

        neighbours     with fewer than this many others near, a record is an outlier
        radius         records at most this far apart (root of the mean squared difference) are near
        share          choose the radius privately so that about this share of records are outliers, such as 2%; uses
                       half of ε
        mechanism      extension: noise independent of the dimension; global, smooth: the paper's, done right:
                       extension, global, smooth
        metric         distance of two records; haversine: km between latitudes and longitudes in degrees; in Python
                       also a function of two records: euclidean, manhattan, chebyshev, haversine
        interval       noise: only the upper end is proved; two-sided: both ends are, with half of the loss for each:
                       noise, two-sided
        by             count each group of these label columns, one or two, separately; all groups cost as much as one
        public_groups  with by, if the schema marks its columns as public: exact sizes, and about half the noise
        certify        count from a certificate that is checked in whole numbers, so that the floating-point solver need
                       not be trusted; at a radius, in memory
        columns        the columns distances are taken over; default: all number columns
        normalise      root-mean-square distance over columns (as in Okada et al. 2015) instead of Euclidean
        scale          divide every column by its spread: the ledger entry of a release of scale, or the release itself
        slack          degree cap: how many others one record can support; a lower one means less noise and more
                       overcounting (default: by a rule)
        epsilon        privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta          δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho            zero-concentrated privacy loss ρ, instead of ε and δ
        loss           the same as a Loss
        """
        raise NotImplementedError

    def subspaces(
        self,
        *,
        radius: float,
        neighbours: int,
        top: int = 1,
        size: int | None = None,
        upto: int | None = None,
        among: tuple[tuple[str, ...], ...] | None = None,
        score: Literal["mass", "count"] = "mass",
        mechanism: Literal["permute-and-flip", "exponential"] | None = None,
        counts: bool = False,
        share: Exact = Fraction(1, 2),
        verify: bool = True,
        gap: float | None = None,
        columns: tuple[str, ...] | None = None,
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[list[list[str]] | list[dict[str, Any]]]:
        """In which attributes do the outliers show?

        radius      records at most this far apart (root of the mean squared difference) are near
        neighbours  with fewer than this many others near, a record is an outlier
        top         how many subspaces to release, best first; they share the loss
        size        search all subspaces of this many columns
        upto        search all subspaces of up to this many columns; default: all there are
        among       search these subspaces only
        score       mass: a graded count that one record moves by 2 at most; count: the paper's, needs far more loss:
                    mass, count
        mechanism   how to choose; default: whichever promises more: permute-and-flip, exponential
        counts      also count the outliers in each, from the same loss
        share       with counts: the part of the loss that goes into the choice
        verify      spend a quarter of ε on whether the named subspaces stand out from the others
        gap         for the plan only: by how many records the best stand out; default: 2 % of them
        columns     the columns subspaces are made of; default: all number columns
        normalise   root-mean-square distance over columns (as in Okada et al. 2015) instead of Euclidean
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
        level: Literal["entry", "window", "person", "paper"] = "entry",
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
        baseline: SeasonalBaseline | ReleasedBaseline | int | None = None,
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
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[WatchAnswer]:
        """When does an outlier occur?

        threshold      flag observations whose statistic is at least this far from its centre
        kappa          threshold in standard deviations of the statistic; needs its public variance, a covariance or a
                       baseline
        level          who is protected: one entry of one observation, one person over any window of observations
                       (w-event privacy), one person throughout (user-level privacy); paper: one entry, as printed:
                       entry, window, person, paper
        statistic      statistic of an observation that is compared: sum, weighted, mahalanobis, max
        low            public lower bound of every entry; default: the schema's, of each column
        high           public upper bound of every entry; default: the schema's, of each column
        change         assume that an entry changes by no more; default: the bounds enforce it
        centre         public mean of the sum; default: that of `mean`, or 0
        variance       public variance of the sum, for the plan
        outlier_from   for the plan: distance from which an observation is an outlier; default: the threshold
        outlier_share  for the plan: share of observations that are outliers; default: from the variance
        columns        columns of an observation; default: all number columns
        time           column of times, public in the schema; flagged observations are listed by it too
        baseline       seasonal baseline (release or ledger entry); values are compared in units of its spread
        relearn        re-estimate the seasonal baseline every N observations
        relearn_share  share of ε spent on re-estimating, with relearn
        mean           public mean of each column
        covariance     public covariance of the columns, row by row
        epsilon        privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta          δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho            zero-concentrated privacy loss ρ, instead of ε and δ
        loss           the same as a Loss

        With statistic weighted:
        weights        weight of each column

        With level person:
        cutoff         number of flags after which the watch is exhausted
        monotone       assume all contributions have the same sign: halves the noise, allows two-sided tests
        adaptive       flags far beyond the threshold cost half
        steps          with δ or ρ: watch N observations with Gaussian noise

        With level window:
        window         protect one person over any window of N consecutive observations

        With level entry:
        scores         release a noisy score too, at no further cost
        """
        raise NotImplementedError

    def shift(
        self,
        *,
        size: float = 1.0,
        direction: Literal["both", "down", "up"] = "both",
        run_length: int = 1000,
        level: Literal["entry", "window", "person"] = "entry",
        low: float | None = None,
        high: float | None = None,
        change: float | None = None,
        centre: float | None = None,
        variance: float | None = None,
        columns: tuple[str, ...] | None = None,
        time: str | None = None,
        baseline: SeasonalBaseline | ReleasedBaseline | int | None = None,
        clip: float | None = None,
        block: int | None = None,
        path: bool = False,
        window: int | None = None,
        memory: int | None = None,
        cutoff: int = 1,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[ShiftAnswer]:
        """Has the mean of the stream shifted?

        size        shift of the mean to detect, in standard deviations of the statistic
        direction   direction of the shift of the mean: both, down, up
        run_length  mean number of observations from one false alarm to the next
        level       who is protected: one entry of one observation, one person over any window of observations (w-event
                    privacy), one person throughout (user-level privacy): entry, window, person
        low         public lower bound of every entry; default: the schema's, of each column
        high        public upper bound of every entry; default: the schema's, of each column
        change      assume that an entry changes by no more; default: the bounds enforce it
        centre      public usual mean of the sum of the entries; default: 0
        variance    public variance of the sum of the entries
        columns     columns of an observation; default: all number columns
        time        column of times, public in the schema; alarms are listed by it too
        baseline    seasonal baseline (release or ledger entry); values are compared in units of its spread
        clip        clip observations this many standard deviations beyond the middle of the shift; default: by a rule
        block       observations to a noisy sum; default: by a rule
        path        release the noisy chart too, at no further cost
        epsilon     privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta       δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho         zero-concentrated privacy loss ρ, instead of ε and δ
        loss        the same as a Loss

        With level window:
        window      protect one person over any window of N consecutive observations

        With level person:
        memory      observations that the chart looks back
        cutoff      number of alarms after which the chart stops
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
        utility: Literal["population", "overlap"] | Utility = "population",
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
        idempotency_key: str | None = None,
        force: bool = False,
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
        top         how many contexts to release; they share ε
        clear       planning assumption: the record's margin, as a share of the context
        epsilon     privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta       δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho         zero-concentrated privacy loss ρ, instead of ε and δ
        loss        the same as a Loss

        With mode ocdp:
        utility     prefer contexts with many records, or much in common with `near`: population, overlap
        near        reference context for utility overlap, as bits
        search      how to search; default: by public facts: direct, best-first, uniform, walk, dfs, bfs, guided
        samples     how many contexts uniform, walk, dfs and bfs visit
        start       where walk, dfs and bfs start, as bits; default: a valid context
        unseen      confirm that `start` was chosen without looking at the data (required)

        With mode dp:
        doubt       share of ε that decides whether to answer none; 0: always name a context
        """
        raise NotImplementedError

    def scale(
        self,
        *,
        units: tuple[tuple[str, ...], ...] | None = None,
        location: bool = False,
        subset: bool = False,
        verify: bool = True,
        columns: tuple[str, ...] | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[dict[str, Any]]:
        """How wide is each column?

        units     columns of one unit, which share one spread and cost as much as one column
        location  release the median of each column too, for bounds and for a watch, with half of the loss
        subset    with more columns than the loss allows for, measure a random part of them, publicly drawn
        verify    spend an eighth of ε on the share of equal pairs of each column, which spreads ignore
        columns   the columns to measure; default: all number columns
        epsilon   privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta     δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho       zero-concentrated privacy loss ρ, instead of ε and δ
        loss      the same as a Loss
        """
        raise NotImplementedError

    def radius(
        self,
        *,
        share: Exact,
        neighbours: int,
        smallest: float | None = None,
        largest: float | None = None,
        verify: bool = True,
        columns: tuple[str, ...] | None = None,
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        slack: int | None = None,
        graded: bool = False,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[dict[str, Any]]:
        """At which radius is that share of the records outliers?

        share       the wanted share of outliers among the records: 1%, 0.01 or 1/100
        neighbours  with fewer than this many others near, a record is an outlier
        smallest    the smallest radius of the grid; default: 1/16
        largest     the largest radius of the grid; default of both: 16, with wider steps from 4 on
        verify      spend a quarter of ε on the number of outliers at the drawn radius, which shows the share
        columns     the columns distances are taken over; default: all number columns
        normalise   root-mean-square distance over columns (as in Okada et al. 2015) instead of Euclidean
        scale       divide every column by its spread: the ledger entry of a release of scale, or the release itself
        slack       degree cap: how many others one record can support; a lower one means less noise and more
                    overcounting (default: by a rule)
        graded      use the outlier mass, which counts how many neighbours are missing: half the error
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
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        slack: int | None = None,
        graded: bool = False,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[dict[str, Any]]:
        """How many outliers are there at every radius?

        neighbours  with fewer than this many others near, a record is an outlier
        radii       the radii, increasing; default without shares: 12 from 0.18 to 8
        shares      find a radius for each of these shares of outliers instead: 1%, 0.01 or 1/100
        columns     the columns distances are taken over; default: all number columns
        normalise   root-mean-square distance over columns (as in Okada et al. 2015) instead of Euclidean
        scale       divide every column by its spread: the ledger entry of a release of scale, or the release itself
        slack       degree cap: how many others one record can support; a lower one means less noise and more
                    overcounting (default: by a rule)
        graded      use the outlier mass, which counts how many neighbours are missing: half the error
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
        like: Layout | ReleaseLike | dict[str, Any] | int | None = None,
        grow: bool = False,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[dict[str, Any]]:
        """Which records are unusual?

        contamination  share of the records to flag, such as 2% or 0.02; default: scores without flags
        columns        columns to use; default: all columns of numbers and of labels
        spreads        source of the spreads: measured privately, or the schema's scales, which cost nothing: private,
                       schema
        scale          divide every column by its spread: the ledger entry of a release of scale, or the release itself
        like           a detector (release, file or ledger entry) whose columns, spreads and grids are used: counts then
                       add up
        grow           add the counts of the detector in like, so that the answer is a detector of both tables
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
        level: Literal["entry", "person"] = "entry",
        guess: float = 0.0,
        clip_distance: float | None = None,
        variance: float | None = None,
        columns: tuple[str, ...] | None = None,
        season: Literal[
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
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[dict[str, Any]]:
        """What is typical, as a whole or in each bucket of a season?

        low            public lower bound of every entry; with a season, default: the schema's
        high           public upper bound of every entry; with a season, default: the schema's
        level          who is protected, as for the watch: entry, person
        guess          public guess of the mean of the sum: the nearer, the better
        clip_distance  clip distances from the guess at this; default: the largest that the bounds allow
        variance       public guess of the variance, for the plan; default: of entries anywhere in their bounds
        columns        columns of an observation; default: all number columns
        season         estimate centre and spread of every column in each bucket of this season; always: one bucket; as-
                       written: one for each different time: always, hour-of-day, half-hour-of-day, day-of-week, hour-
                       of-week, half-hour-of-week, month-of-year, day-of-year, as-written
        time           column of times that buckets are read from, public in the schema
        change         with a season: assume that an entry changes by no more; default: the bounds enforce it
        epsilon        privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta          δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho            zero-concentrated privacy loss ρ, instead of ε and δ
        loss           the same as a Loss
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
        idempotency_key: str | None = None,
        force: bool = False,
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

    def who(
        self,
        *,
        detector: int | ReleaseLike,
        most: int,
        above: float | None = None,
        identifier: str | None = None,
        show: tuple[str, ...] = (),
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[list[dict[str, Any]]]:
        """Which records should a person review?

        detector    the ledger entry of the detector that the steward has allowed to name records, or its release
        most        names to ask for; all of them count towards the steward's allowance
        above       name only records with a score above this public bar; default: the detector's threshold
        identifier  column of identifiers to name records by; default: the person of the schema, else row numbers
        show        what else to show of those who are named: score, contributions, row
        epsilon     privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta       δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho         zero-concentrated privacy loss ρ, instead of ε and δ
        loss        the same as a Loss
        """
        raise NotImplementedError

    def tally(
        self,
        *,
        detector: int | ReleaseLike,
        time: str,
        periods: int,
        every: str = "1",
        start: str | None = None,
        public_time: bool = False,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[list[dict[str, Any]]]:
        """How many records has a detector flagged so far, period by period?

        detector     the ledger entry of a release of detector that was given a contamination, or the release
        time         the column of dates or numbers that says when a record was made
        periods      number of periods, and of running totals
        every        length of a period: 1, or with a unit, such as '1 week'
        start        where the first period begins: a number or a date (default: the column's lower bound)
        public_time  the schema states `time = true` for the column: times are not protected, and noise is less
        epsilon      privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta        δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho          zero-concentrated privacy loss ρ, instead of ε and δ
        loss         the same as a Loss
        """
        raise NotImplementedError

    def threshold(
        self,
        *,
        detector: int | ReleaseLike,
        contamination: Exact | None = None,
        counted: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
        idempotency_key: str | None = None,
        force: bool = False,
    ) -> Release[dict[str, Any]]:
        """Above which score is the wanted share of the records flagged?

        detector       the ledger entry of a release of detector, or the release
        contamination  share of the records to flag, such as 2% or 0.02
        counted        instead of contamination: the ledger entry of a release of count, whose number of outliers is the
                       number to flag, or the release
        epsilon        privacy loss ε to spend, exactly as written: 0.5 or 1/2
        delta          δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure
        rho            zero-concentrated privacy loss ρ, instead of ε and δ
        loss           the same as a Loss
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
        mechanism: Literal["extension", "global", "smooth"] = "extension",
        metric: Literal["euclidean", "manhattan", "chebyshev", "haversine"] | Any = "euclidean",
        interval: Literal["noise", "two-sided"] = "noise",
        by: tuple[str, ...] | None = None,
        public_groups: bool = False,
        certify: bool = False,
        columns: tuple[str, ...] | None = None,
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        slack: int | None = None,
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
        radius: float,
        neighbours: int,
        top: int = 1,
        size: int | None = None,
        upto: int | None = None,
        among: tuple[tuple[str, ...], ...] | None = None,
        score: Literal["mass", "count"] = "mass",
        mechanism: Literal["permute-and-flip", "exponential"] | None = None,
        counts: bool = False,
        share: Exact = Fraction(1, 2),
        verify: bool = True,
        gap: float | None = None,
        columns: tuple[str, ...] | None = None,
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
        level: Literal["entry", "window", "person", "paper"] = "entry",
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
        baseline: SeasonalBaseline | ReleasedBaseline | int | None = None,
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

    def shift(
        self,
        *,
        size: float = 1.0,
        direction: Literal["both", "down", "up"] = "both",
        run_length: int = 1000,
        level: Literal["entry", "window", "person"] = "entry",
        low: float | None = None,
        high: float | None = None,
        change: float | None = None,
        centre: float | None = None,
        variance: float | None = None,
        columns: tuple[str, ...] | None = None,
        time: str | None = None,
        baseline: SeasonalBaseline | ReleasedBaseline | int | None = None,
        clip: float | None = None,
        block: int | None = None,
        path: bool = False,
        window: int | None = None,
        memory: int | None = None,
        cutoff: int = 1,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of shift."""
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
        utility: Literal["population", "overlap"] | Utility = "population",
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
        units: tuple[tuple[str, ...], ...] | None = None,
        location: bool = False,
        subset: bool = False,
        verify: bool = True,
        columns: tuple[str, ...] | None = None,
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
        share: Exact,
        neighbours: int,
        smallest: float | None = None,
        largest: float | None = None,
        verify: bool = True,
        columns: tuple[str, ...] | None = None,
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        slack: int | None = None,
        graded: bool = False,
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
        normalise: bool = True,
        scale: int | ReleaseLike | None = None,
        slack: int | None = None,
        graded: bool = False,
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
        like: Layout | ReleaseLike | dict[str, Any] | int | None = None,
        grow: bool = False,
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
        level: Literal["entry", "person"] = "entry",
        guess: float = 0.0,
        clip_distance: float | None = None,
        variance: float | None = None,
        columns: tuple[str, ...] | None = None,
        season: Literal[
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

    def who(
        self,
        *,
        detector: int | ReleaseLike,
        most: int,
        above: float | None = None,
        identifier: str | None = None,
        show: tuple[str, ...] = (),
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of who."""
        raise NotImplementedError

    def tally(
        self,
        *,
        detector: int | ReleaseLike,
        time: str,
        periods: int,
        every: str = "1",
        start: str | None = None,
        public_time: bool = False,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of tally."""
        raise NotImplementedError

    def threshold(
        self,
        *,
        detector: int | ReleaseLike,
        contamination: Exact | None = None,
        counted: int | ReleaseLike | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        loss: Loss | None = None,
    ) -> Plan:
        """What to expect of threshold."""
        raise NotImplementedError
