(* Sums over answers of any kind: finitely many, or as many as there are whole numbers. `total f` is the sum of a function
   that is not negative and adds up to a finite number. Axioms: the three of mathcomp-analysis. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.classical Require Import boolp classical_sets functions.
From mathcomp.analysis Require Import reals ereal constructive_ereal esum.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Local Open Scope classical_set_scope.

Section Sums.
Variables (R : realType) (O : choiceType).
Implicit Types f g : O -> R.

(* The sum as a real number; the value for functions that do not add up is never used. *)
Definition total f : R := fine (\esum_(a in [set: O]) (f a)%:E).
(* Not negative, with a finite sum. *)
Definition adds_up f := (forall a, 0 <= f a) /\ (\esum_(a in [set: O]) (f a)%:E < +oo)%E.

(* The sum is not infinite, so that nothing is lost by writing it as a real number. *)
Lemma totalE f : adds_up f -> (total f)%:E = \esum_(a in [set: O]) (f a)%:E.
Proof.
move=> [f0 fin]; rewrite /total fineK // fin_numElt fin andbT (lt_le_trans (ltNyr 0)) //.
by apply: esum_ge0 => a _; rewrite lee_fin.
Qed.

(* Sums are not negative. *)
Lemma total_ge0 f : (forall a, 0 <= f a) -> 0 <= total f.
Proof. by move=> f0; apply: fine_ge0; apply: esum_ge0 => a _; rewrite lee_fin. Qed.

(* What is below a function that adds up adds up too. *)
Lemma adds_up_le f g : (forall a, 0 <= f a <= g a) -> adds_up g -> adds_up f.
Proof.
move=> fg [g0 fin]; split=> [a|]; first by have /andP[] := fg a.
by apply: le_lt_trans fin; apply: le_esum => a _; rewrite lee_fin; have /andP[] := fg a.
Qed.

(* Larger terms, larger sum. *)
Lemma total_le f g : (forall a, 0 <= f a <= g a) -> adds_up g -> total f <= total g.
Proof.
move=> fg ag; have af := adds_up_le fg ag; rewrite -lee_fin !totalE //.
by apply: le_esum => a _; rewrite lee_fin; have /andP[] := fg a.
Qed.

(* The sum of sums. *)
Lemma adds_upD f g : adds_up f -> adds_up g -> adds_up (fun a => f a + g a).
Proof.
move=> af ag; have [f0 _] := af; have [g0 _] := ag; split=> [a|]; first by rewrite addr_ge0.
under eq_esum do rewrite EFinD.
by rewrite esumD; [rewrite -!totalE // -EFinD ltry | move=> a _; rewrite lee_fin | move=> a _; rewrite lee_fin].
Qed.

(* The same, as an equation. *)
Lemma totalD f g : adds_up f -> adds_up g -> total (fun a => f a + g a) = total f + total g.
Proof.
move=> af ag; have [f0 _] := af; have [g0 _] := ag; apply: EFin_inj.
rewrite totalE; last exact: adds_upD.
under eq_esum do rewrite EFinD.
by rewrite esumD; [rewrite EFinD !totalE | move=> a _; rewrite lee_fin | move=> a _; rewrite lee_fin].
Qed.

(* Half of the next lemma: a factor may be taken out. *)
Lemma esumZ_le f (c : R) : 0 <= c -> (forall a, 0 <= f a) ->
  (\esum_(a in [set: O]) (c * f a)%:E <= c%:E * \esum_(a in [set: O]) (f a)%:E)%E.
Proof.
move=> c0 f0; apply: ub_ereal_sup => _ [X [finX XS] <-].
apply: (@le_trans _ _ (\sum_(y \in X) (c%:E * (f y)%:E))%E).
  by apply: lee_fsum => // y _; rewrite -EFinM lee_fin.
rewrite -ge0_mule_fsumr; last by move=> y; rewrite lee_fin.
by apply: lee_wpmul2l; [rewrite lee_fin | apply: ereal_sup_ub; exists X].
Qed.

(* A multiple adds up. *)
Lemma adds_upZ f (c : R) : 0 <= c -> adds_up f -> adds_up (fun a => c * f a).
Proof.
move=> c0 af; have [f0 _] := af; split=> [a|]; first by rewrite mulr_ge0.
by apply: (le_lt_trans (esumZ_le c0 f0)); rewrite -totalE // -EFinM ltry.
Qed.

(* A factor can be taken out. *)
Lemma totalZ f (c : R) : 0 <= c -> adds_up f -> total (fun a => c * f a) = c * total f.
Proof.
move=> c0 af; have [f0 _] := af.
have le (d : R) g : 0 <= d -> adds_up g -> total (fun a => d * g a) <= d * total g.
  move=> d0 ag; have [g0 _] := ag; rewrite -lee_fin totalE; last exact: adds_upZ.
  by rewrite EFinM totalE //; apply: esumZ_le.
apply/eqP; rewrite eq_le le //=; move: c0; rewrite le_eqVlt => /orP[/eqP<-|c0].
  by rewrite mul0r total_ge0 // => a; rewrite mul0r.
have c1 : 0 <= c^-1 by rewrite invr_ge0 ltW.
have := le _ _ c1 (adds_upZ (ltW c0) af).
under [X in total X <= _ -> _]eq_fun do rewrite mulrA mulVf ?gt_eqF // mul1r.
by rewrite ler_pdivl_mull.
Qed.

(* Nothing adds up to 0. *)
Lemma total0 : total (fun=> 0) = 0.
Proof. by rewrite /total esum1. Qed.

(* The same. *)
Lemma adds_up0 : adds_up (fun=> 0).
Proof. by split=> //; rewrite esum1 ?ltry. Qed.

(* Equal terms, equal sums. *)
Lemma eq_total f g : f =1 g -> total f = total g.
Proof. by move=> fg; congr total; apply/funext. Qed.

(* A probability law on the answers. *)
Definition is_law (p : O -> R) := (forall a, 0 <= p a) /\ \esum_(a in [set: O]) (p a)%:E = 1%:E.

(* A law adds up. *)
Lemma law_adds_up p : is_law p -> adds_up p.
Proof. by case=> p0 p1; split; rewrite // p1 ltry. Qed.

(* To 1. *)
Lemma law_total p : is_law p -> total p = 1.
Proof. by case=> p0 p1; rewrite /total p1. Qed.

(* The expected value of a function with values from 0 to 1. *)
Lemma mean_adds_up (p g : O -> R) : adds_up p -> (forall a, 0 <= g a <= 1) -> adds_up (fun a => p a * g a).
Proof.
move=> ap g01; have [p0 _] := ap; apply: (adds_up_le _ ap) => a.
by have /andP[g0 g1] := g01 a; rewrite mulr_ge0 //= ler_pimulr.
Qed.

(* It is at most the mass of the law. *)
Lemma mean_le (p g : O -> R) : adds_up p -> (forall a, 0 <= g a <= 1) -> total (fun a => p a * g a) <= total p.
Proof.
move=> ap g01; have [p0 _] := ap; apply: total_le => // a.
by have /andP[g0 g1] := g01 a; rewrite mulr_ge0 //= ler_pimulr.
Qed.
End Sums.
