(* (F2) and (F3) of ledger for questions without a delta: accept by the sum of eps or by the sum of rho. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.classical Require Import boolp classical_sets.
From mathcomp.analysis Require Import reals topology normedtype derive sequences exp.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory numFieldNormedType.Exports.
Local Open Scope ring_scope.
Local Open Scope classical_set_scope.

Section Convert.
Variable R : realType.

(* 1 + x <= e^x for every x; the library has it for x >= 0 only. *)
Lemma expR_ge1D (x : R) : 1 + x <= expR x.
Proof.
case: (lerP 0 x) => x0; first exact: expR_ge1Dx.
have drv := fun (z : R) (_ : z \in `]x, 0[%R) => is_derive_expR z.
have [|c] := MVT x0 drv; first by apply: continuous_subspaceT => z; exact: continuous_expR.
rewrite in_itv /= => /andP[_ c0]; rewrite expR0 sub0r => eq.
have : expR c * - x <= - x by rewrite ler_pimull ?oppr_ge0 ?(ltW x0) // -expR0 ler_expR ltW.
by rewrite -eq ler_subl_addr -ler_subl_addl opprK addrC.
Qed.

(* ln z <= z - 1: the only inequality that the conversion of (F2) needs. *)
Lemma ln_le (z : R) : 0 < z -> ln z <= z - 1.
Proof. by move=> z0; rewrite -ler_expR lnK //; apply: le_trans (expR_ge1D _); rewrite addrC subrK. Qed.

Variable a : R.
Hypothesis a_gt1 : 1 < a.
(* The constant of (F2): (1/a) (1 - 1/a)^(a - 1). *)
Definition kappa := expR (- ln a + (a - 1) * ln (1 - a^-1)).

(* kappa is the largest value of (1 - w) w^(a - 1): the step of (F2) from a moment to a delta. *)
Lemma kappa_max (w : R) : 0 < w -> 1 - w <= kappa * expR (- ((a - 1) * ln w)).
Proof.
move=> w0; case: (lerP 1 w) => w1.
  by apply: (@le_trans _ _ 0); rewrite ?subr_le0 // mulr_ge0 // ltW // expR_gt0.
have a0 : 0 < a by apply: lt_trans a_gt1.
have v0 : 0 < 1 - w by rewrite subr_gt0.
have b0 : 0 < 1 - a^-1 by rewrite subr_gt0 invf_lt1.
have l1 : ln a + ln (1 - w) <= a * (1 - w) - 1 by rewrite -lnM ?posrE // ln_le // mulr_gt0.
have l2 : (a - 1) * (ln w - ln (1 - a^-1)) <= a * w - (a - 1).
  have -> : a * w - (a - 1) = (a - 1) * (w / (1 - a^-1) - 1).
    rewrite mulrBr mulr1; congr (_ - _).
    have -> : 1 - a^-1 = (a - 1) / a by rewrite mulrBl divff ?lt0r_neq0 // mul1r.
    have ne : a - 1 != 0 by rewrite lt0r_neq0 // subr_gt0.
    by rewrite invf_div [w * (a / (a - 1))]mulrA [RHS]mulrC divfK // mulrC.
  rewrite ler_pmul2l ?subr_gt0 // -lnV ?posrE // -lnM ?posrE ?invr_gt0 //.
  by apply: ln_le; rewrite divr_gt0.
rewrite /kappa -expRD -[X in X <= _](@lnK _ (1 - w)) ?posrE // ler_expR.
have := ler_add l1 l2.
have -> : a * w - (a - 1) = - (a * (1 - w) - 1) by rewrite mulrBr mulr1 !opprB addrCA.
rewrite subrr mulrBr -[leLHS]addrA => h; rewrite -subr_le0; apply: le_trans h.
move: (ln a) (ln (1 - w)) (_ * ln w) (_ * ln (1 - a^-1)) => x y z t.
by rewrite !opprD !opprK addrA [y + _]addrA [y + x]addrC -!addrA [- t + z]addrC.
Qed.

(* p^a q^(1-a), where q = 0 only if p = 0 *)
Definition mom (x y : R) := if x == 0 then 0 else expR (a * ln x + (1 - a) * ln y).
(* Two weights of one answer: what cannot happen for the second table cannot happen for the first. *)
Definition below (x y : R) := [/\ 0 <= x, 0 <= y & y = 0 -> x = 0].

(* Moments are not negative. *)
Lemma mom_ge0 x y : 0 <= mom x y.
Proof. by rewrite /mom; case: ifP => // _; apply/ltW/expR_gt0. Qed.

(* Where the first weight is not 0, both are above 0, so that logarithms are defined. *)
Lemma below_gt0 x y : below x y -> x != 0 -> 0 < x /\ 0 < y.
Proof.
case=> x0 y0 ac xn; split; rewrite lt_neqAle ?x0 ?y0 andbT eq_sym //.
by apply: contraNneq xn => /ac->.
Qed.

(* Weights of a path are products of weights of its steps. *)
Lemma belowM x y p q : below x y -> below p q -> below (x * p) (y * q).
Proof.
move=> [x0 y0 xy] [p0 q0 pq]; split; rewrite ?mulr_ge0 // => /eqP.
by rewrite mulf_eq0 => /orP[/eqP/xy->|/eqP/pq->]; rewrite ?mul0r ?mulr0.
Qed.

(* The moment of a path is the product of the moments of its steps. *)
Lemma momM x y p q : below x y -> below p q -> mom (x * p) (y * q) = mom x y * mom p q.
Proof.
move=> b b'; rewrite /mom mulf_eq0; case: (eqVneq x 0) => /= [_|xn]; first by rewrite mul0r.
case: (eqVneq p 0) => /= [_|pn]; first by rewrite mulr0.
have [x0 y0] := below_gt0 b xn; have [p0 q0] := below_gt0 b' pn.
by rewrite !lnM ?posrE // -expRD !mulrDr addrACA.
Qed.

(* The conversion of (F2) for one path: a weight is at most e^eps times the other, plus a share of its moment. *)
Lemma mom_convert eps x y : below x y -> x <= expR eps * y + kappa * expR (- ((a - 1) * eps)) * mom x y.
Proof.
move=> b; rewrite /mom; case: (eqVneq x 0) => [->|xn].
  by case: b => _ y0 _; rewrite mulr0 addr0 mulr_ge0 // ltW // expR_gt0.
have [x0 y0] := below_gt0 b xn.
have w0 : 0 < expR eps * y / x by rewrite divr_gt0 // mulr_gt0 // expR_gt0.
have := kappa_max w0; rewrite -(ler_pmul2l x0) mulrBr mulr1 mulrCA divff // mulr1 ler_subl_addl => h.
apply: (le_trans h); rewrite ler_add2l mulrCA -[leRHS]mulrA ler_pmul2l ?expR_gt0 //.
rewrite -[X in X * _](@lnK _ x) ?posrE // -!expRD ler_expR.
rewrite !lnM ?posrE ?mulr_gt0 ?invr_gt0 ?expR_gt0 // lnV ?posrE // expK.
have -> : 1 - a = - (a - 1) by rewrite opprB.
have -> : a * ln x = (a - 1) * ln x + ln x by rewrite mulrBl mul1r subrK.
rewrite !mulrDr mulrN mulNr !opprD opprK.
move: ((a - 1) * eps) ((a - 1) * ln y) ((a - 1) * ln x) => p r t.
have -> : ln x + (- p - r + t) = - p + (t + ln x - r) by rewrite -!addrA [LHS]addrCA [ln x + _]addrA [_ + t]addrC.
by [].
Qed.
End Convert.

Section Either.
Variables (R : realType) (O : finType) (a : R) (eps rho : R).
Hypotheses (a_gt1 : 1 < a) (eps_ge0 : 0 <= eps) (rho_ge0 : 0 <= rho).

(* prices (e, r): the laws are within e^e of each other, and r-zCDP at the order a *)
Inductive analyst := Done | Ask of R & R & (O -> R) & (O -> R) & (option O -> analyst).

(* Every question keeps what its claim states, whatever was answered before. *)
Fixpoint honest (t : analyst) : Prop :=
  if t is Ask e r p q next then
    [/\ 0 <= e /\ 0 <= r, forall x, below (p x) (q x), forall x, p x <= expR e * q x,
        \sum_x mom a (p x) (q x) <= expR (a * (a - 1) * r) & forall w, honest (next w)]
  else True.

(* se, sr: what was spent. One more is accepted when either sum stays within its limit. *)
Definition accepts (se sr : R) := (se <= eps) || (sr <= rho).
(* The chance that the transcript is in S, for one table (side = true) or the other. *)
Fixpoint chance (side : bool) (se sr : R) (t : analyst) (S : seq (option O) -> bool) : R :=
  if t is Ask e r p q next then
    if accepts (se + e) (sr + r) then
      \sum_x (if side then p x else q x) * chance side (se + e) (sr + r) (next (Some x)) (fun w => S (Some x :: w))
    else chance side se sr (next None) (fun w => S (None :: w))
  else (S [::])%:R.

(* the moment of the paths that end with more than eps *)
Fixpoint moment (se sr : R) (t : analyst) : R :=
  if t is Ask e r p q next then
    if accepts (se + e) (sr + r) then \sum_x mom a (p x) (q x) * moment (se + e) (sr + r) (next (Some x))
    else moment se sr (next None)
  else if se <= eps then 0 else 1.

(* Moments of trees are not negative. *)
Lemma moment_ge0 se sr t : 0 <= moment se sr t.
Proof.
elim: t se sr => [|e r p q next IH] se sr /=; first by case: ifP; rewrite ?lexx ?ler01.
by case: ifP => _; [apply: sumr_ge0 => x _; rewrite mulr_ge0 ?mom_ge0 ?IH | apply: IH].
Qed.

(* Paths that end above eps have stayed within rho, so that their moments add up to at most e^(a (a - 1) rho). *)
Lemma moment_le se sr t : honest t -> accepts se sr ->
  moment se sr t <= if sr <= rho then expR (a * (a - 1) * (rho - sr)) else 0.
Proof.
have aa : 0 <= a * (a - 1) by rewrite mulr_ge0 ?subr_ge0 ?(ltW a_gt1) // (le_trans ler01) // ltW.
elim: t se sr => [|e r p q next IH] se sr /=.
  move=> _; rewrite /accepts; case: (se <= eps) => /= [_|le].
    by case: ifP => // _; apply/ltW/expR_gt0.
  by rewrite le -{1}expR0 ler_expR mulr_ge0 ?subr_ge0.
case=> -[e0 r0] bl _ mo hn acc; case: ifP => [acc'|_]; last exact: IH.
have step x := IH (Some x) _ _ (hn (Some x)) acc'.
case: (lerP (sr + r) rho) step => [le|gt] step; last first.
  apply: (@le_trans _ _ 0); last by case: ifP => // _; apply/ltW/expR_gt0.
  by rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => x _; rewrite oppr_ge0 mulr_ge0_le0 ?mom_ge0 // step.
have -> : sr <= rho by apply: le_trans le; rewrite ler_addl.
apply: (@le_trans _ _ (\sum_x mom a (p x) (q x) * expR (a * (a - 1) * (rho - (sr + r))))).
  by apply: ler_sum => x _; rewrite ler_wpmul2l ?mom_ge0.
rewrite -mulr_suml; apply: (le_trans (ler_wpmul2r _ mo)); first exact/ltW/expR_gt0.
have -> : rho - sr = r + (rho - (sr + r)) by rewrite [RHS]addrC opprD [rho + (_ - _)]addrA subrK.
by rewrite -expRD -mulrDr.
Qed.

Let c := kappa a * expR (- ((a - 1) * eps)).
(* The factor of the moments is not negative. *)
Lemma c_ge0 : 0 <= c. Proof. by rewrite mulr_ge0 // ltW // expR_gt0. Qed.

(* (F3) for all continuations of a path with the weights x and y: induction over the analyst. *)
Lemma either_path se sr t S x y : honest t -> below x y -> x <= expR se * y ->
  x * chance true se sr t S <= expR eps * (y * chance false se sr t S) + c * (mom a x y * moment se sr t).
Proof.
elim: t se sr S x y => [|e r p q next IH] se sr S x y /=.
  move=> _ b xy; case: (S [::]); rewrite ?mulr1n ?mulr0n ?mulr1 ?mulr0 ?add0r; last first.
    by rewrite mulr_ge0 ?c_ge0 // mulr_ge0 ?mom_ge0 //; case: (se <= eps); rewrite ?lexx ?ler01.
  case: ifP => se_le; last by rewrite mulr1; apply: mom_convert.
  rewrite !mulr0 addr0; apply: (le_trans xy); apply: ler_wpmul2r; first by case: b.
  by rewrite ler_expR.
case=> -[e0 r0] bl pq mo hn b xy; case: ifP => _; last exact: IH.
rewrite !mulr_sumr -big_split /=; apply: ler_sum => z _.
have b' := belowM b (bl z).
have xy' : x * p z <= expR (se + e) * (y * q z).
  rewrite expRD mulrACA; apply: ler_pmul => //; by [case: b | case: (bl z)].
have := IH (Some z) (se + e) (sr + r) (fun w => S (Some z :: w)) _ _ (hn _) b' xy'.
by rewrite (momM a b (bl z)) -!mulrA.
Qed.

(* The delta that the conversion costs. *)
Definition convert := kappa a * expR ((a - 1) * (a * rho - eps)).

(* (F3) for finitely many answers and questions without a delta. *)
Theorem F3 t S : honest t -> chance true 0 0 t S <= expR eps * chance false 0 0 t S + convert.
Proof.
move=> ht; have b1 : below (1 : R) 1 by split; rewrite ?ler01 // => /eqP; rewrite oner_eq0.
have xy : (1 : R) <= expR 0 * 1 by rewrite expR0 mulr1.
have := either_path 0 S ht b1 xy; rewrite !mul1r => h; apply: (le_trans h); rewrite ler_add2l.
have acc : accepts 0 0 by rewrite /accepts eps_ge0.
have := moment_le ht acc; rewrite rho_ge0 subr0 => m.
have -> : mom a 1 1 = 1 by rewrite /mom oner_eq0 ln1 !mulr0 addr0 expR0.
rewrite mul1r; apply: (le_trans (ler_wpmul2l c_ge0 m)).
rewrite /c /convert -[leLHS]mulrA ler_pmul2l ?expR_gt0 // -expRD ler_expR.
by rewrite [leRHS]mulrBr [leLHS]addrC [(a - 1) * (a * rho)]mulrA [(a - 1) * a]mulrC.
Qed.
End Either.
