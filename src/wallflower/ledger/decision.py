"""What a question would cost an account, and whether it is answered: the one place where a budget is decided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from wallflower.errors import BudgetExhausted, PrivacyError, Untranslatable
from wallflower.ledger.account import Account, Obstacle
from wallflower.ledger.chain import Entry, canonical
from wallflower.ledger.rows import CONSTRAINED, NAMING, is_addable
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.text import Message
from wallflower.units import DELTA_GRID, Claim, Price, Protection, cost_text, price, round_up

_LARGEST: Final = Fraction(10**6)  # of a Loss; a price may go beyond, and is shown as this
_ALMOST: Final = 1 - Fraction(1, 10**40)
_FENCED: Final = (
    "output-constrained answers are no differential privacy, and the steward has not allowed so much of them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that a question is paid for.

    id        its charge in the ledger
    dataset   data set name; the budget is tracked under it
    analyst   who asked
    cost      what the question states
    booked    what the account was charged
    label     the lasting name of the question
    idempotency_key  repeats the charge without paying again
    left      what the analyst may still spend
    limit     what the account may spend in all
    protects  whom the account protects, in words
    protection  whom the account protects
    public    columns whose cells the query took for public
    names_records  the answer names records, and promises nothing to these
    starter   nobody has granted a budget, so the starter cap holds
    time      when it was charged
    stored    its public release, when it was answered before
    """

    id: int
    dataset: str
    analyst: str
    cost: Loss
    booked: Loss | None
    label: str
    idempotency_key: str | None
    left: Loss
    limit: Loss
    protects: str
    protection: Protection
    starter: bool
    time: str
    public: tuple[str, ...] = ()
    names_records: bool = False
    stored: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a question costs a data set for one analyst, and what stands in its way, if anything does.

    dataset   data set name; the budget is tracked under it
    analyst   who asks
    account   where it would be charged
    cost      what the question states
    claim     what it states of itself besides
    price     what that is in the account's unit; None where no theorem translates it or it is fenced off
    obstacle  what stands in its way, if anything does
    """

    dataset: str
    analyst: str
    account: Account
    cost: Loss
    claim: Claim
    price: Price | None
    obstacle: Obstacle | None

    @property
    def protection(self) -> Protection:
        """Whose loss the account bounds."""
        return self.account.members[self.dataset]

    @property
    def protects(self) -> str:
        """Whom the account protects once the query is answered, in words."""
        return self.protects_after(None)

    def protects_after(self, entry: int | None) -> str:
        """Whom the account protects once the query is answered, which is charged as this entry."""
        public = sorted({*self.account.public.get(self.dataset, ()), *self.claim.public})
        named = self.account.naming.since or (entry if self.names_records else None)
        return self.protection.text_but(public, named=named)

    @property
    def booked(self) -> Loss | None:
        """What the account is charged, in its own unit."""
        return None if self.price is None else loss_of(self.price, self.protection)

    @property
    def public(self) -> tuple[str, ...]:
        """Columns whose cells the query takes for public."""
        return self.claim.public

    @property
    def names_records(self) -> bool:
        """Whether the answer names records, and promises nothing to these."""
        return self.claim.naming is not None

    @property
    def names_left(self) -> int | None:
        """How many names the steward's allowance has left for such lists; None for an answer without names."""
        if self.claim.naming is None:
            return None
        allowance = self.account.naming.find(self.dataset, self.claim.naming.detector)
        return 0 if allowance is None else allowance.left

    @property
    def cost_text(self) -> Message:
        """What the query states and what the account is charged, in words."""
        return cost_text(self.cost, self.booked, self.protection)

    @property
    def left(self) -> Loss:
        """Return what the analyst may still spend now."""
        if self.cost.kind is Kind.OUTPUT_CONSTRAINED:
            return Loss(self.account.fence.left, kind=self.cost.kind, neighbours=Neighbours.ADD_REMOVE)
        return self.account.left_for(self.analyst)

    @property
    def left_after(self) -> Loss | None:
        """What would be left then; None where the question would be refused."""
        if self.obstacle is not None:
            return None
        if self.price is None:
            return self.left.less(self.cost)
        if self.account.limit.accounting == "either":
            return replace(self.account, spent=self.account.spent.plus(self.price)).left
        left = self.left
        if self.account.limit.accounting == "concentrated":
            return left.less(Loss.zcdp(self.price.rho or 0, neighbours=left.neighbours))
        return left.less(Loss(self.price.epsilon or Fraction(), delta=self.price.delta, neighbours=left.neighbours))

    @property
    def account_after(self) -> Account:
        """Where the account would stand then; as it is where the question would be refused."""
        if self.obstacle is not None:
            return self.account
        if self.price is None:
            fence = replace(self.account.fence, spent=self.account.fence.spent + self.cost.amount)
            return replace(self.account, fence=fence)
        after = self.account.after(self.price, self.analyst)
        if self.claim.naming is None:
            return after
        return replace(after, naming=after.naming.request(self.dataset, self.claim.naming))

    @property
    def affords(self) -> int:
        """How many such questions would be answered now, one after another."""
        if self.obstacle is not None:
            return 0
        if self.price is None:
            return int(self.account.fence.left // self.cost.amount) if self.cost.amount else 0
        affordable = self.account.affords(self.price, self.analyst)
        if self.claim.naming is None or self.names_left is None:
            return affordable
        return min(affordable, self.names_left // self.claim.naming.most)

    @property
    def columns(self) -> dict[str, str | None]:
        """What a charge keeps of the price, beside what was stated."""
        said = {"claim": canonical(self.claim.to_json()), "names": self.claim.names}
        if self.price is None:
            return {"unit": CONSTRAINED, **said}
        found = self.price
        amounts = {"epsilon": found.epsilon, "booked_delta": found.delta, "rho": found.rho, "factor": found.factor}
        texts = {part: None if amount is None else str(amount) for part, amount in amounts.items()}
        unit = self.protection.to_json() | ({"public": list(self.claim.public)} if self.claim.public else {})
        return {"unit": canonical(unit), **said, **texts}

    def refusal(self) -> PrivacyError:
        """Why the question is not answered, as an error."""
        assert self.obstacle is not None
        if self.obstacle.part == "unit":
            return Untranslatable(self.obstacle.text, dataset=self.dataset, remedy=_remedy(self.protection))
        return BudgetExhausted(
            self.dataset,
            asked=self.cost,
            left=self.obstacle.left,
            part=self.obstacle.part,
            why=self.obstacle.text,
            booked=self.booked,
            remedy=_REMEDIES.get(self.obstacle.part, _LESS) + self._factor_words(),
        )

    def _factor_words(self) -> str:
        """Why a price is not what was stated."""
        if self.price is None or self.price.factor == 1:
            return f" The budget bounds the loss of {self.protection.text}." if self.protection.person else ""
        words = f" {factor_words(self.claim, self.price, self.protection)}"
        if self.price.factor == self.claim.moves:  # no unit makes it cheaper
            return words
        if self.protection.person is not None:
            return f"{words} With `rollup` in [person] of the schema a person is one record and costs what is stated."
        return f"{words} Before the first question the data owner may declare another unit (wallflower budget declare)."


def make_receipt(
    quoted: Quote, paid: Entry, *, left: Loss, label: str, idempotency_key: str | None, stored: dict[str, Any] | None
) -> Receipt:
    """The receipt of a charge that is in the ledger; `left` is what the analyst can spend after it."""
    return Receipt(
        id=paid.id,
        dataset=quoted.dataset,
        analyst=quoted.analyst,
        cost=quoted.cost,
        booked=quoted.booked,
        label=label,
        idempotency_key=idempotency_key,
        left=left,
        limit=quoted.account.limit.loss.under(quoted.protection.neighbours),
        protects=quoted.protects_after(paid.id),
        protection=quoted.protection,
        public=quoted.claim.public,
        names_records=quoted.names_records,
        starter=quoted.account.starter,
        time=paid.time,
        stored=stored,
    )


def make_quote(account: Account, dataset: str, cost: Loss, claim: Claim, analyst: str) -> Quote:
    """Price a claim and hold it to the account."""
    found, obstacle = None, None
    if cost.kind is Kind.OUTPUT_CONSTRAINED:
        obstacle = _fence_obstacle(account, cost)
    else:
        try:
            found = _addable(price(claim, account.members[dataset]))
            obstacle = _naming_obstacle(account, dataset, claim, analyst) or account.obstacle(found, analyst)
        except Untranslatable as refusal:
            obstacle = Obstacle(part="unit", text=refusal.why, left=account.left_for(analyst))
    return Quote(
        dataset=dataset, analyst=analyst, account=account, cost=cost, claim=claim, price=found, obstacle=obstacle
    )


def factor_words(claim: Claim, found: Price, declared: Protection) -> str:
    """Why a claim is charged more than it states: an assumed change, the unit of protection, or both."""
    reasons = []
    if claim.moves > 1:
        reasons.append(
            f"the assumed change fits {claim.moves:,} times into the public range, and the budget covers any change "
            "within the range"
        )
    if found.factor != claim.moves:
        reasons.append(f"the budget bounds the loss of {declared.text}")
    return f"It counts {_brief(found.factor)} times, because {', and '.join(reasons)}."


def booking_note(claim: Claim, declared: Protection) -> str | None:
    """What a claim would be charged in the declared unit, and why; None if that is what it states, or has no rule."""
    try:
        found = price(claim, declared)
    except Untranslatable:
        return None
    if found.factor == 1:
        return None
    return f"The budget would be charged {loss_of(found, declared)}. {factor_words(claim, found, declared)}"


def _brief(factor: Fraction) -> str:
    return f"{int(factor):,}" if factor.denominator == 1 else f"{float(factor):.4g}"


def loss_of(found: Price, declared: Protection) -> Loss:
    """A price as a loss in the declared unit, for showing."""
    if found.epsilon is None:
        return Loss.zcdp(min(found.rho or Fraction(), _LARGEST), neighbours=declared.neighbours)
    amount, delta = min(found.epsilon, _LARGEST), min(found.delta, _ALMOST)
    return Loss(amount, delta=delta, neighbours=declared.neighbours)


def _addable(found: Price) -> Price:
    """An ε that adds up for ever: where its denominator would not, the next that does."""
    if found.epsilon is None or is_addable(found.epsilon):
        return found
    return replace(found, epsilon=round_up(found.epsilon, DELTA_GRID))


def _fence_obstacle(account: Account, cost: Loss) -> Obstacle | None:
    """Such an answer shows that it is valid at any ε: one at ε = 0 would use up no allowance, and is refused."""
    left = Loss(account.fence.left, kind=cost.kind, neighbours=cost.neighbours)
    allowed = 0 < cost.amount <= account.fence.left
    return account.shut(left) or (None if allowed else Obstacle(part=CONSTRAINED, text=_FENCED, left=left))


def _naming_obstacle(account: Account, dataset: str, claim: Claim, analyst: str) -> Obstacle | None:
    """Why records may not be named, from the steward's allowance alone; names that came out do not matter."""
    naming = claim.naming
    if naming is None:
        return None
    allowance = account.naming.find(dataset, naming.detector)
    if allowance is None or not allowance.most:
        reason = f"the steward has not allowed names by the detector of entry {naming.detector}"
    elif naming.by_row and not allowance.by_row:
        reason = "the steward has not said that rows keep their numbers when a record is replaced"
    elif naming.most > allowance.left:
        reason = f"{naming.most:,} names were requested, and {allowance.left:,} of {allowance.most:,} allowed are left"
    else:
        return None
    return Obstacle(part=NAMING, text=reason, left=account.left_for(analyst))


def _remedy(declared: Protection) -> str:
    return (
        f"This data set bounds the loss of {declared.text}. Ask what protects that, or have the steward declare "
        "another unit before the first question (wallflower budget declare)."
    )


_LESS: Final = "Lower the loss, or ask the data owner for more budget (wallflower budget grant)."
_REMEDIES: Final = {
    "expiry": "The data owner can set a new limit (wallflower budget grant).",
    "pace": "Wait for the next year, lower the loss, or ask the data owner for another pace.",
    NAMING: "Ask the data steward (wallflower budget allow-naming); letters and the steward's own review need no "
    "allowance.",
    "squares": "Ask the data steward for a budget with accounting sum or either (wallflower budget grant).",
    "quota": "Use a smaller ε, or ask the data steward for a quota, or for a larger one (wallflower budget quota).",
    CONSTRAINED: "Ask in mode dp, or ask the data owner (wallflower budget allow-constrained).",
}
