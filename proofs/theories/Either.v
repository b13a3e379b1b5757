(* (F2) and (F3) of ledger: accept while the sum of rho stays within its limit, or while either that or the sum of eps does; the deltas
   of questions have a limit of their own. Answers of any kind, adaptive analysts, refusals. Axioms: the three of mathcomp-analysis. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.classical Require Import boolp classical_sets.
From mathcomp.analysis Require Import reals ereal constructive_ereal topology normedtype derive sequences esum exp.
From wallflower Require Import Sums.
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
Variables (R : realType) (O : choiceType) (either : bool) (a : R) (eps del rho : R).
Hypotheses (a_gt1 : 1 < a) (eps_ge0 : 0 <= eps) (rho_ge0 : 0 <= rho).

(* What analysts do: ask a question with the prices (e, d, r), for which the two tables have laws p and q of the answer, and go on as
   they like with the answer, or with the refusal (None). *)
Inductive analyst := Done | Ask of R & R & R & (O -> R) & (O -> R) & (option O -> analyst).

(* The claim of a question. The laws have good parts p0 and q0: p0 lacks at most d, its moment of order a is that of r-zCDP, and, where
   the sum of eps may decide, p0 is within e^e of q0. For d = 0 the good parts are the laws themselves; for d > 0 they are what
   "splitting a step" of proof.md makes. *)
Definition claim (e d r : R) (p q : O -> R) := exists p0 q0 : O -> R,
  [/\ forall x, p0 x <= p x /\ q0 x <= q x, forall x, below (p0 x) (q0 x), 1 - d <= total p0,
      either -> forall x, p0 x <= expR e * q0 x
    & adds_up (fun x => mom a (p0 x) (q0 x)) /\ total (fun x => mom a (p0 x) (q0 x)) <= expR (a * (a - 1) * r)].

(* Every question keeps what its claim states, whatever was answered before. *)
Fixpoint honest (t : analyst) : Prop :=
  if t is Ask e d r p q next then
    [/\ [/\ 0 <= e, 0 <= d & 0 <= r], is_law p, is_law q, claim e d r p q & forall w, honest (next w)]
  else True.

(* se, sr: what was spent. By the sum of rho, or, with `either`, by that of eps. *)
Definition accepts (se sr : R) := (either && (se <= eps)) || (sr <= rho).
(* The chance that the transcript is in S, for one table (side = true) or the other, when se, sd and sr are spent. *)
Fixpoint chance (side : bool) (se sd sr : R) (t : analyst) (S : seq (option O) -> bool) : R :=
  if t is Ask e d r p q next then
    if accepts (se + e) (sr + r) && (sd + d <= del) then
      total (fun x => (if side then p x else q x) *
                      chance side (se + e) (sd + d) (sr + r) (next (Some x)) (fun w => S (Some x :: w)))
    else chance side se sd sr (next None) (fun w => S (None :: w))
  else (S [::])%:R.

(* Chances are between 0 and 1. *)
Lemma chance_range side se sd sr t S : honest t -> 0 <= chance side se sd sr t S <= 1.
Proof.
elim: t se sd sr S => [|e d r p q next IH] se sd sr S /=; first by case: (S _); rewrite ?ler01 ?lexx.
case=> _ lp lq _ hn; case: ifP => _; last exact: IH.
have ls : is_law (fun x : O => if side then p x else q x) by case: (side).
have [s0 _] := ls.
have r01 x : 0 <= chance side (se + e) (sd + d) (sr + r) (next (Some x)) (fun w => S (Some x :: w)) <= 1.
  exact: IH.
apply/andP; split; first by apply: total_ge0 => x; rewrite mulr_ge0 //; have /andP[] := r01 x.
by rewrite -(law_total ls); apply: mean_le => //; apply: law_adds_up.
Qed.

(* Some transcript happens: the chances add up to 1, so `chance` is a probability. *)
Lemma chance_all side se sd sr t : honest t -> chance side se sd sr t (fun _ => true) = 1.
Proof.
elim: t se sd sr => [|e d r p q next IH] se sd sr //= [_ lp lq _ hn]; case: ifP => _; last exact: IH.
have ls : is_law (fun x : O => if side then p x else q x) by case: (side).
by rewrite -(law_total ls); apply: eq_total => x; rewrite IH // mulr1.
Qed.

Let c := kappa a * expR (- ((a - 1) * eps)).
(* The factor of the moments is not negative. *)
Lemma c_ge0 : 0 <= c. Proof. by rewrite mulr_ge0 // ltW // expR_gt0. Qed.

(* What is left of the limit of rho, as a bound on moments; paths that end above eps have stayed within rho. *)
Definition moments_left (sr : R) := if sr <= rho then expR (a * (a - 1) * (rho - sr)) else 0.

(* (F2) and (F3) for all continuations of a path that has spent se, sd and sr. u and v are the chances of S by the good parts, m is the
   moment of the paths that end above eps: the first loses no more than the deltas that are left, and the conversion of (F2) holds
   whatever the weights x and y of the path so far are. Induction over the analyst. *)
Lemma either_path se sd sr t S : honest t -> accepts se sr -> 0 <= del - sd -> exists u v m : R,
  [/\ 0 <= u <= 1 /\ chance true se sd sr t S <= u + (del - sd), 0 <= v <= 1 /\ v <= chance false se sd sr t S,
      0 <= m <= moments_left sr
    & forall x y, below x y -> (either -> x <= expR se * y) -> x * u <= expR eps * (y * v) + c * (mom a x y * m)].
Proof.
have aa : 0 <= a * (a - 1) by rewrite mulr_ge0 ?subr_ge0 ?(ltW a_gt1) // (le_trans ler01) // ltW.
elim: t se sd sr S => [|e d r p q next IH] se sd sr S /=.
  move=> _ acc ds; exists (S [::])%:R, (S [::])%:R, (if either && (se <= eps) then 0 else 1).
  have b01 (b : bool) : 0 <= b%:R :> R /\ b%:R <= 1 :> R by case: b; rewrite ?ler01 ?lexx.
  have [s0 s1] := b01 (S [::]); rewrite s0 s1; split=> //; first by rewrite ler_addl.
  - move: acc; rewrite /accepts /moments_left; case: (either && _) => /= [_|le].
      by rewrite lexx /=; case: ifP => // _; apply/ltW/expR_gt0.
    by rewrite ler01 le /= -{1}expR0 ler_expR mulr_ge0 ?subr_ge0.
  - move=> x y b xy; case: (S [::]); rewrite ?mulr1n ?mulr0n ?mulr1 ?mulr0 ?add0r; last first.
      by rewrite mulr_ge0 ?c_ge0 // mulr_ge0 ?mom_ge0 //; case: (either && _); rewrite ?lexx ?ler01.
    case: ifP => [/andP[ei se_le]|_]; last by rewrite mulr1; apply: mom_convert.
    rewrite !mulr0 addr0; apply: (le_trans (xy ei)); apply: ler_wpmul2r; first by case: b.
    by rewrite ler_expR.
case=> -[e0 d0 r0] lp lq [p0 [q0 [part bl mass pure [am mo]]]] hn acc ds.
case: ifP => [/andP[acc' dd]|_]; last exact: IH.
have ds' : 0 <= del - (sd + d) by rewrite subr_ge0.
have step x := IH (Some x) (se + e) (sd + d) (sr + r) (fun w => S (Some x :: w)) (hn (Some x)) acc' ds'.
have pick : exists f : O -> R * R * R, forall x, let: (u, v, m) := f x in
  [/\ 0 <= u <= 1 /\ chance true (se + e) (sd + d) (sr + r) (next (Some x)) (fun w => S (Some x :: w)) <= u + (del - (sd + d)),
      0 <= v <= 1 /\ v <= chance false (se + e) (sd + d) (sr + r) (next (Some x)) (fun w => S (Some x :: w)),
      0 <= m <= moments_left (sr + r)
    & forall X Y, below X Y -> (either -> X <= expR (se + e) * Y) -> X * u <= expR eps * (Y * v) + c * (mom a X Y * m)].
  have [f fP] := @choice _ (R * R * R)%type _ (fun x => let: ex_intro u (ex_intro v (ex_intro m h)) := step x in
    ex_intro (fun z : R * R * R => let: (u, v, m) := z in
      [/\ 0 <= u <= 1 /\ chance true (se + e) (sd + d) (sr + r) (next (Some x)) (fun w => S (Some x :: w)) <= u + (del - (sd + d)),
          0 <= v <= 1 /\ v <= chance false (se + e) (sd + d) (sr + r) (next (Some x)) (fun w => S (Some x :: w)),
          0 <= m <= moments_left (sr + r)
        & forall X Y, below X Y -> (either -> X <= expR (se + e) * Y) ->
            X * u <= expR eps * (Y * v) + c * (mom a X Y * m)]) (u, v, m) h).
  by exists f.
have [f fP] := pick; pose u x := (f x).1.1; pose v x := (f x).1.2; pose m x := (f x).2.
have uP x : 0 <= u x <= 1 /\ chance true (se + e) (sd + d) (sr + r) (next (Some x)) (fun w => S (Some x :: w)) <= u x + (del - (sd + d)).
  by have := fP x; rewrite /u; case: (f x) => [[? ?] ?] [].
have vP x : 0 <= v x <= 1 /\ v x <= chance false (se + e) (sd + d) (sr + r) (next (Some x)) (fun w => S (Some x :: w)).
  by have := fP x; rewrite /v; case: (f x) => [[? ?] ?] [].
have mP x : 0 <= m x <= moments_left (sr + r) by have := fP x; rewrite /m; case: (f x) => [[? ?] ?] [].
have cP x X Y : below X Y -> (either -> X <= expR (se + e) * Y) -> X * u x <= expR eps * (Y * v x) + c * (mom a X Y * m x).
  by have := fP x; rewrite /u /v /m; case: (f x) => [[? ?] ?] [_ _ _]; apply.
have u01 x : 0 <= u x <= 1 by case: (uP x).
have v01 x : 0 <= v x <= 1 by case: (vP x).
have [p_ge0 _] := lp; have [q_ge0 _] := lq.
have ap := law_adds_up lp; have aq := law_adds_up lq.
have p00 x : 0 <= p0 x by case: (bl x).
have q00 x : 0 <= q0 x by case: (bl x).
have ap0 : adds_up p0 by apply: (adds_up_le _ ap) => x; rewrite p00; case: (part x).
have aq0 : adds_up q0 by apply: (adds_up_le _ aq) => x; rewrite q00; case: (part x).
have M0 : 0 <= moments_left (sr + r) by rewrite /moments_left; case: ifP => // _; apply/ltW/expR_gt0.
have amm : adds_up (fun x => mom a (p0 x) (q0 x) * m x).
  apply: (adds_up_le _ (adds_upZ M0 am)) => x; have /andP[m0 m1] := mP x.
  by rewrite mulr_ge0 ?mom_ge0 //= mulrC ler_wpmul2r ?mom_ge0.
have apu := mean_adds_up ap0 u01; have aqv := mean_adds_up aq0 v01.
exists (total (fun x => p0 x * u x)), (total (fun x => q0 x * v x)), (total (fun x => mom a (p0 x) (q0 x) * m x)).
have tp0 : total p0 <= 1.
  by rewrite -(law_total lp); apply: total_le => // x; rewrite p00; case: (part x).
have tq0 : total q0 <= 1.
  by rewrite -(law_total lq); apply: total_le => // x; rewrite q00; case: (part x).
split.
- split.
    rewrite total_ge0 /=; last by move=> x; rewrite mulr_ge0 //; have /andP[] := u01 x.
    exact: le_trans (mean_le ap0 u01) tp0.
  pose P x := chance true (se + e) (sd + d) (sr + r) (next (Some x)) (fun w => S (Some x :: w)).
  have P01 x : 0 <= P x <= 1 by apply: chance_range.
  pose rest x := p x - p0 x.
  have rest0 x : 0 <= rest x by rewrite subr_ge0; case: (part x).
  have arest : adds_up rest by apply: (adds_up_le _ ap) => x; rewrite rest0 /= /rest ler_subl_addr ler_addl.
  have trest : total rest <= d.
    have : total p0 + total rest = 1.
      by rewrite -totalD // -(law_total lp); apply: eq_total => x; rewrite addrC subrK.
    by move=> sum1; rewrite -(ler_add2l (total p0)) sum1 -ler_subl_addr.
  apply: (@le_trans _ _ (total (fun x => (p0 x * u x + (del - (sd + d)) * p0 x) + rest x))).
    apply: total_le => [x|]; last by do 2![apply: adds_upD => //]; apply: adds_upZ.
    have /andP[P0 P1] := P01 x; rewrite mulr_ge0 //= (_ : p x = p0 x + rest x); last by rewrite addrC subrK.
    rewrite mulrDl; apply: ler_add; last by rewrite ler_pimulr.
    by rewrite [(del - _) * _]mulrC -mulrDr ler_wpmul2l //; case: (uP x).
  have az : adds_up (fun x => (del - (sd + d)) * p0 x) by apply: adds_upZ.
  have au : adds_up (fun x => p0 x * u x + (del - (sd + d)) * p0 x) by apply: adds_upD.
  rewrite (totalD au arest) (totalD apu az).
  rewrite totalZ // -addrA ler_add2l.
  have -> : del - sd = (del - (sd + d)) * 1 + d by rewrite mulr1 opprD addrA subrK.
  by apply: ler_add => //; apply: ler_wpmul2l.
- split.
    rewrite total_ge0 /=; last by move=> x; rewrite mulr_ge0 //; have /andP[] := v01 x.
    exact: le_trans (mean_le aq0 v01) tq0.
  apply: total_le => [x|]; last by apply: mean_adds_up => // x; apply: chance_range.
  have /andP[v0 _] := v01 x; have [_ vc] := vP x; have [_ qq] := part x.
  by rewrite mulr_ge0 //= ler_pmul.
- rewrite total_ge0 /=; last by move=> x; have /andP[m0 _] := mP x; rewrite mulr_ge0 ?mom_ge0.
  apply: (@le_trans _ _ (total (fun x => moments_left (sr + r) * mom a (p0 x) (q0 x)))).
    apply: total_le => [x|]; last exact: adds_upZ.
    by have /andP[m0 m1] := mP x; rewrite mulr_ge0 ?mom_ge0 //= mulrC ler_wpmul2r ?mom_ge0.
  rewrite totalZ // /moments_left; case: (lerP (sr + r) rho) => [le|_]; last first.
    by rewrite mul0r; case: ifP => // _; apply/ltW/expR_gt0.
  have -> : sr <= rho by apply: le_trans le; rewrite ler_addl.
  apply: (le_trans (ler_wpmul2l _ mo)); first exact/ltW/expR_gt0.
  have -> : rho - sr = (rho - (sr + r)) + r by rewrite opprD [rho + (_ - _)]addrA subrK.
  by rewrite -expRD -mulrDr.
- move=> x y b xy; have [x0 y0 _] := b.
  rewrite -!totalZ // ?mulr_ge0 ?c_ge0 ?mom_ge0 ?(ltW (expR_gt0 _)) //; try by apply: adds_upZ; rewrite ?mom_ge0.
  rewrite -totalD; try by do 2![apply: adds_upZ; rewrite ?c_ge0 ?mom_ge0 ?(ltW (expR_gt0 _)) //].
  apply: total_le => [z|]; last first.
    by apply: adds_upD; do 2![apply: adds_upZ; rewrite ?c_ge0 ?mom_ge0 ?(ltW (expR_gt0 _)) //].
  have /andP[u0 _] := u01 z; rewrite !mulr_ge0 //=.
  have xy' : either -> x * p0 z <= expR (se + e) * (y * q0 z).
    by move=> ei; rewrite expRD mulrACA; apply: ler_pmul; rewrite ?p00 //; [exact: xy | exact: pure].
  have := cP z _ _ (belowM b (bl z)) xy'.
  by rewrite (momM a b (bl z)) -!mulrA.
Qed.

(* The delta that the conversion costs. *)
Definition convert := kappa a * expR ((a - 1) * (a * rho - eps)).

(* (F2) where `either` is false, (F3) where it is true: all answers together are (eps, del + convert)-differentially private. *)
Lemma F2_F3 t S : 0 <= del -> honest t ->
  chance true 0 0 0 t S <= expR eps * chance false 0 0 0 t S + (del + convert).
Proof.
move=> del0 ht; have b1 : below (1 : R) 1 by split; rewrite ?ler01 // => /eqP; rewrite oner_eq0.
have xy : either -> (1 : R) <= expR 0 * 1 by rewrite expR0 mulr1.
have acc : accepts 0 0 by rewrite /accepts rho_ge0 orbT.
have ds : 0 <= del - 0 by rewrite subr0.
have [u [v [m [[_ uc] [_ vc] /andP[m0 m1] conv]]]] := either_path S ht acc ds.
apply: (le_trans uc); rewrite subr0 [leRHS]addrCA [leLHS]addrC ler_add2l.
have := conv _ _ b1 xy; rewrite !mul1r => h; apply: (le_trans h); apply: ler_add.
  by apply: ler_wpmul2l => //; exact/ltW/expR_gt0.
have -> : mom a 1 1 = 1 by rewrite /mom oner_eq0 ln1 !mulr0 addr0 expR0.
rewrite mul1r; apply: (le_trans (ler_wpmul2l c_ge0 m1)); rewrite /moments_left rho_ge0 subr0.
rewrite /c /convert -[leLHS]mulrA ler_pmul2l ?expR_gt0 // -expRD ler_expR.
by rewrite [leRHS]mulrBr [leLHS]addrC [(a - 1) * (a * rho)]mulrA [(a - 1) * a]mulrC.
Qed.
End Either.

(* (F2): the rule `concentrated`. *)
Theorem F2 (R : realType) (O : choiceType) (a eps del rho : R) (t : analyst R O) (S : seq (option O) -> bool) :
  1 < a -> 0 <= eps -> 0 <= rho -> 0 <= del -> honest false a t ->
  chance false eps del rho true 0 0 0 t S <= expR eps * chance false eps del rho false 0 0 0 t S + (del + convert a eps rho).
Proof. by move=> a1 e0 r0 d0; exact: F2_F3. Qed.

(* (F3): the rule `either`. *)
Theorem F3 (R : realType) (O : choiceType) (a eps del rho : R) (t : analyst R O) (S : seq (option O) -> bool) :
  1 < a -> 0 <= eps -> 0 <= rho -> 0 <= del -> honest true a t ->
  chance true eps del rho true 0 0 0 t S <= expR eps * chance true eps del rho false 0 0 0 t S + (del + convert a eps rho).
Proof. by move=> a1 e0 r0 d0; exact: F2_F3. Qed.
