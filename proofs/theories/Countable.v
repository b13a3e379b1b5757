(* (F1) of ledger for answers of any kind, so for the whole numbers that noisy counts are. The same theorem and the same proof as in
   Filter.v, with sums of series instead of finite sums. Axioms: the three of mathcomp-analysis. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.classical Require Import boolp classical_sets functions.
From mathcomp.analysis Require Import reals ereal constructive_ereal sequences esum exp.
From wallflower Require Import Sums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Local Open Scope classical_set_scope.

Section Filter.
Variables (R : realType) (O : choiceType).
(* answers that are covered: those that do not name the record in question; predT where nothing names records *)
Variable good : pred O.

(* What analysts do, coins and all: ask a question with a price (e, d), for which the two tables have laws p and q of the answer, and
   go on as they like with the answer, or with the refusal (None). *)
Inductive analyst := Done | Ask of R & R & (O -> R) & (O -> R) & (option O -> analyst).

(* The part of a law that lies in a set of answers. *)
Definition inside (E : pred O) (p : O -> R) (a : O) : R := if E a then p a else 0.
(* The claim of a question: (e, d)-differential privacy for all sets of covered answers, one way. *)
Definition within (e d : R) (p q : O -> R) := forall E : pred O, (forall a, E a -> good a) ->
  total (inside E p) <= expR e * total (inside E q) + d.

(* Every question keeps what its claim states, whatever was answered before. *)
Fixpoint honest (t : analyst) : Prop :=
  if t is Ask e d p q next then
    [/\ 0 <= e /\ 0 <= d, is_law p, is_law q, within e d p q & forall r, honest (next r)]
  else True.

(* What is seen: answers, and refusals (None). *)
Definition transcript := seq (option O).
(* A transcript that names nobody whom the theorem is about. *)
Definition covered (w : transcript) := all (fun r => if r is Some a then good a else true) w.

(* The chance that the transcript is in S, with (eps, del) left, for one table (side = true) or the other. *)
Fixpoint chance (side : bool) (eps del : R) (t : analyst) (S : transcript -> bool) : R :=
  if t is Ask e d p q next then
    if (e <= eps) && (d <= del) then
      total (fun a => (if side then p a else q a) *
                      chance side (eps - e) (del - d) (next (Some a)) (fun w => S (Some a :: w)))
    else chance side eps del (next None) (fun w => S (None :: w))
  else (S [::])%:R.

(* One side of a question is a law. *)
Lemma side_law (side : bool) p q : is_law p -> is_law q -> is_law (fun a : O => if side then p a else q a : R).
Proof. by case: side. Qed.

(* Chances are between 0 and 1. *)
Lemma chance_range side eps del t S : honest t -> 0 <= chance side eps del t S <= 1.
Proof.
elim: t eps del S => [|e d p q next IH] eps del S /=; first by case: (S _); rewrite ?ler01 ?lexx.
case=> _ lp lq _ hn; case: ifP => _; last exact: IH.
have ls := side_law side lp lq; have as_ := law_adds_up ls; have [s0 _] := ls.
have r01 a : 0 <= chance side (eps - e) (del - d) (next (Some a)) (fun w => S (Some a :: w)) <= 1.
  exact: IH.
apply/andP; split; first by apply: total_ge0 => a; rewrite mulr_ge0 //; have /andP[] := r01 a.
by rewrite -(law_total ls); apply: mean_le.
Qed.

(* Some transcript happens: the chances add up to 1, so `chance` is a probability. *)
Lemma chance_all side eps del t : honest t -> chance side eps del t (fun _ => true) = 1.
Proof.
elim: t eps del => [|e d p q next IH] eps del //= [_ lp lq _ hn]; case: ifP => _; last exact: IH.
rewrite -(law_total (side_law side lp lq)); apply: eq_total => a.
by rewrite IH // mulr1.
Qed.

(* An empty set of transcripts has chance 0. *)
Lemma chance_none side eps del t S : (forall w, S w = false) -> chance side eps del t S = 0.
Proof.
elim: t eps del S => [|e d p q next IH] eps del S S0 /=; first by rewrite S0.
case: ifP => _; rewrite ?IH // -(@total0 R O); apply: eq_total => a.
by rewrite IH ?mulr0.
Qed.

(* From sets of answers to functions with values in [0, 1]. *)
Lemma within_fun e d p q g : is_law p -> is_law q -> within e d p q ->
  (forall a, 0 <= g a <= 1) -> (forall a, ~~ good a -> g a = 0) ->
  total (fun a => p a * g a) <= expR e * total (fun a => q a * g a) + d.
Proof.
move=> lp lq w g01 gbad; have [p0 _] := lp; have [q0 _] := lq.
have ap := law_adds_up lp; have aq := law_adds_up lq; have K0 : 0 <= expR e := ltW (expR_gt0 e).
pose E a := good a && (expR e * q a <= p a).
have sub a : E a -> good a by case/andP.
have api : adds_up (inside E p) by apply: (adds_up_le _ ap) => a; rewrite /inside; case: ifP; rewrite ?p0 ?lexx.
have aqi : adds_up (inside E q) by apply: (adds_up_le _ aq) => a; rewrite /inside; case: ifP; rewrite ?q0 ?lexx.
have apg := mean_adds_up ap g01; have aqg := mean_adds_up aq g01.
have step : total (fun a => p a * g a) + expR e * total (inside E q) <=
            total (inside E p) + expR e * total (fun a => q a * g a).
  rewrite -!totalZ // -!totalD //; try exact: adds_upZ.
  apply: total_le => [a|]; last by apply: adds_upD => //; apply: adds_upZ.
  have /andP[g0 g1] := g01 a; apply/andP; split.
    by rewrite addr_ge0 ?mulr_ge0 // /inside; case: ifP.
  rewrite /inside /E; case: (boolP (good a)) => [_|/gbad->] /=; last by rewrite !mulr0 addr0.
  case: ifP => [le|/negbT lt].
    rewrite -subr_ge0 (_ : _ - _ = (p a - expR e * q a) * (1 - g a)); last first.
      by rewrite mulrBr mulr1 mulrBl opprB opprD mulrA [- (p a * g a) + _]addrC addrACA.
    by rewrite mulr_ge0 ?subr_ge0.
  by rewrite mulr0 addr0 add0r mulrA ler_wpmul2r // ltW // ltNge.
have := le_trans step (ler_add (w _ sub) (lexx _)).
by rewrite addrC -addrA ler_add2l addrC.
Qed.

(* (F1): whatever the analysts do with answers and refusals, all answers together are (eps, del)-differentially private. *)
Theorem F1_sum eps del t (S : transcript -> bool) : 0 <= eps -> 0 <= del -> honest t -> (forall w, S w -> covered w) ->
  chance true eps del t S <= expR eps * chance false eps del t S + del.
Proof.
have expo_ge1 (x : R) : 0 <= x -> 1 <= expR x by move=> x0; rewrite -expR0 ler_expR.
elim: t eps del S => [|e d p q next IH] eps del S e0 d0 /=.
  by move=> _ _; apply: ler_paddr => //; apply: ler_pemull; rewrite ?ler0n ?expo_ge1.
case=> -[ee0 dd0] lp lq w hn cov; case: ifP => [/andP[ee dd]|_]; last by apply: IH => // w' /cov.
pose Q a := chance false (eps - e) (del - d) (next (Some a)) (fun w => S (Some a :: w)).
pose P a := chance true (eps - e) (del - d) (next (Some a)) (fun w => S (Some a :: w)).
have Qr a : 0 <= Q a <= 1 by apply: chance_range.
have Pr a : 0 <= P a <= 1 by apply: chance_range.
have PQ a : P a <= expR (eps - e) * Q a + (del - d) by apply: IH; rewrite ?subr_ge0 // => w' /cov /andP[].
have K0 : 0 <= expR (eps - e) := ltW (expR_gt0 _).
pose g a := Num.min 1 (expR (eps - e) * Q a).
have gr a : 0 <= g a <= 1.
  have /andP[q0 _] := Qr a.
  by rewrite /g le_minr ler01 /= le_minl lexx andbT mulr_ge0.
have gbad a : ~~ good a -> g a = 0.
  move=> /negbTE bad; rewrite /g /Q chance_none ?mulr0; last by move=> w'; apply/negP => /cov /=; rewrite bad.
  by apply/min_idPr; rewrite ler01.
have Pg a : P a <= g a + (del - d).
  have /andP[_ p1] := Pr a; rewrite /g addr_minl le_minr PQ andbT.
  by apply: (le_trans p1); rewrite ler_addl subr_ge0.
have ap := law_adds_up lp; have aq := law_adds_up lq; have [p0 _] := lp; have [q0 _] := lq.
have dd0' : 0 <= del - d by rewrite subr_ge0.
apply: (@le_trans _ _ (total (fun a => p a * g a) + (del - d))).
  rewrite -[X in _ <= _ + X]mulr1 -(law_total lp) -totalZ // -totalD //; last exact: adds_upZ.
    apply: total_le => [a|]; last by apply: adds_upD; [exact: mean_adds_up | exact: adds_upZ].
    have /andP[P0 _] := Pr a; rewrite mulr_ge0 //= [(del - d) * _]mulrC -mulrDr.
    by apply: ler_wpmul2l; [exact: p0 | exact: Pg].
  exact: mean_adds_up.
apply: (le_trans (ler_add (within_fun lp lq w gr gbad) (lexx (del - d)))).
have ex : expR eps = expR e * expR (eps - e) by rewrite -expRD addrC subrK.
rewrite -addrA [d + _]addrC subrK ler_add2r ex -mulrA.
apply: ler_wpmul2l; first exact/ltW/expR_gt0.
rewrite -totalZ //; last exact: mean_adds_up.
apply: total_le => [a|]; last by apply: adds_upZ => //; exact: mean_adds_up.
have /andP[g0 _] := gr a; have /andP[Q0 _] := Qr a; rewrite mulr_ge0 //= mulrCA.
by apply: ler_wpmul2l => //; rewrite /g le_minl lexx orbT.
Qed.

(* What the mechanisms prove, answer by answer, is a claim. *)
Lemma pointwise_within e p q : is_law p -> is_law q -> (forall a, good a -> p a <= expR e * q a) -> within e 0 p q.
Proof.
move=> [p0 _] lq le E cov; have [q0 _] := lq; rewrite addr0.
have aqi : adds_up (inside E q).
  by apply: (adds_up_le _ (law_adds_up lq)) => a; rewrite /inside; case: ifP; rewrite ?q0 ?lexx.
rewrite -totalZ //; last exact/ltW/expR_gt0.
apply: total_le => [a|]; last by apply: adds_upZ => //; exact/ltW/expR_gt0.
rewrite /inside; case: ifP => [/cov ga|_]; last by rewrite mulr0 lexx.
by rewrite p0 le.
Qed.
End Filter.
