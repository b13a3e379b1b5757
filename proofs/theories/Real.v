(* The same over the reals, with the exponential. Axioms: the three of mathcomp-analysis (classical logic). *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From mathcomp.classical Require Import boolp classical_sets cardinality fsbigop functions.
From mathcomp.analysis Require Import reals ereal constructive_ereal topology normedtype sequences esum exp.
From wallflower Require Import Extension Pairing Filter Noise.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Local Open Scope classical_set_scope.

Section Instances.
Variable R : realType.

(* What (F1) needs of the exponential. *)
Lemma expR_ge1 (x : R) : 0 <= x -> 1 <= expR x.
Proof. by move=> x0; rewrite -expR0 ler_expR. Qed.

(* (F1) of ledger; transcripts in S name nobody whom the theorem is about *)
Theorem F1 (O : finType) (good : pred O) (eps del : R) (t : analyst R O) (S : transcript O -> bool) :
  0 <= eps -> 0 <= del -> honest expR good t -> (forall w, S w -> covered good w) ->
  Filter.chance true eps del t S <= expR eps * Filter.chance false eps del t S + del.
Proof. by apply: F1_sum; [exact: expR_gt0 | exact: expRD | exact: expR_ge1]. Qed.

(* (U1) of ledger *)
Theorem U1 (T : Type) (P : nat -> T -> R) (e d : R) (S : T) k :
  (forall i S, (i < k)%N -> P i S <= expR e * P i.+1 S + d) ->
  P 0%N S <= expR (e *+ k) * P k S + d * (\sum_(j < k) expR (e *+ j)).
Proof. by apply: Filter.U1; [exact: expR_gt0 | exact: expRD]. Qed.

(* (P) of scale: one record replaced, records in any two orders, an order that is drawn evenly and kept secret *)
Theorem P_of_scale (I : finType) (T O : Type) (eps : R) (M : (I -> T) -> O -> R) (X X' : I -> T) o :
  (forall v X X' o, in_place v X X' -> M X o <= expR eps * M X' o) -> in_any_order X X' ->
  secret M (fun=> (#|{: {perm I}}|%:R)^-1) X o <= expR eps * secret M (fun=> (#|{: {perm I}}|%:R)^-1) X' o.
Proof. by move=> private; apply: secret_order => // c; rewrite invr_ge0 ler0n. Qed.

(* pointwise ratios are ratios of chances, for every set of outcomes of any kind *)
Lemma esum_within (T : choiceType) (S : set T) (a b : T -> R) (K : R) :
  (forall y, 0 <= b y) -> (forall y, a y <= K * b y) -> 0 <= K ->
  (\esum_(y in S) (a y)%:E <= K%:E * \esum_(y in S) (b y)%:E)%E.
Proof.
move=> b0 ab K0; apply: ub_ereal_sup => _ [X [finX XS] <-].
apply: (@le_trans _ _ (\sum_(y \in X) (K%:E * (b y)%:E))%E).
  by apply: lee_fsum => // y _; rewrite -EFinM lee_fin.
rewrite -ge0_mule_fsumr; last by move=> y; rewrite lee_fin.
by apply: lee_wpmul2l; [rewrite lee_fin | apply: ereal_sup_ub; exists X].
Qed.

(* (L) of mechanisms *)
Definition discrete_laplace (b : R) (z : int) : R := laplace (expR (- b^-1)) z.

(* A scale b gives a p between 0 and 1. *)
Lemma scale_range (b : R) : 0 < b -> 0 < expR (- b^-1) < 1.
Proof. by move=> b0; rewrite expR_gt0 expR_lt1 oppr_lt0 invr_gt0. Qed.

(* A scale b of at least D/eps gives the ratio e^eps. *)
Lemma scale_ratio (b eps : R) (D : nat) : 0 < eps -> 0 < b -> D%:R / eps <= b -> (expR (- b^-1))^-1 ^+ D <= expR eps.
Proof.
move=> e0 b0 le; rewrite -expRN opprK -expRMm ler_expR.
by rewrite ler_pdivr_mulr // -ler_pdivr_mull // mulrC.
Qed.

(* (L): discrete Laplace noise of scale b >= D/eps, answer by answer. *)
Theorem L_of_mechanisms (b eps : R) (D : nat) (f f' y : int) : 0 < eps -> 0 < b -> D%:R / eps <= b -> (`|f - f'| <= D)%N ->
  discrete_laplace b (y - f) <= expR eps * discrete_laplace b (y - f').
Proof.
move=> e0 b0 le df; have /andP[p0 p1] := scale_range b0.
apply: (le_trans (laplace_ratio p0 p1 y df)); apply: ler_wpmul2r; first exact: laplace_ge0.
exact: scale_ratio.
Qed.

(* it is a law: its mass on all whole numbers is 1 *)
Lemma geometric_total (a p : R) : 0 <= a -> 0 < p < 1 -> \esum_(i in [set: nat]) (a * p ^+ i)%:E = (a / (1 - p))%:E.
Proof.
move=> a0 /andP[p0 p1].
have := @nneseries_esum R (fun i => (a * p ^+ i)%:E) xpredT.
rewrite (_ : [set x | xpredT x] = [set: nat]); last by apply/seteqP; split.
move=> <-; last by move=> i _; rewrite lee_fin mulr_ge0 // exprn_ge0 // ltW.
apply/cvg_lim => //.
rewrite (_ : (fun n => _) = EFin \o series (geometric a p)).
  apply: cvg_EFin.
    by apply: nearW.
  by apply: cvg_geometric_series; rewrite ger0_norm // ltW.
by apply/funext => n /=; rewrite sumEFin.
Qed.

(* The chances of discrete Laplace noise add up to 1: its normaliser is the right one. *)
Theorem laplace_total (p : R) : 0 < p < 1 -> \esum_(z in [set: int]) (laplace p z)%:E = 1%:E.
Proof.
move=> p01; have /andP[p0 p1] := p01.
have l0 z : (0 <= (laplace p z)%:E)%E by rewrite lee_fin laplace_ge0.
rewrite (esumID (range Posz)) //.
rewrite !setTI (_ : ~` range Posz = range Negz); last first.
  apply/seteqP; split=> [[n|n] /=|_ [n _ <-] [m _]] //; last by exists n.
  by case; exists n.
rewrite !esum_image; try by move=> m n _ _ [].
rewrite (eq_esum (b := fun i => ((1 - p) / (1 + p) * p ^+ i)%:E)); last by [].
rewrite [X in (_ + X)%E](eq_esum (b := fun i => ((1 - p) / (1 + p) * p * p ^+ i)%:E)); last first.
  by move=> i _; rewrite /laplace /= exprS mulrA.
have c0 : 0 <= (1 - p) / (1 + p) by rewrite divr_ge0 ?subr_ge0 ?addr_ge0 ?ler01 // ltW.
rewrite !geometric_total //; last by rewrite mulr_ge0 // ltW.
rewrite -EFinD -mulrDl -{1}[(1 - p) / (1 + p)]mulr1 -mulrDr divfK ?divff //.
- by rewrite gt_eqF // subr_gt0.
- by rewrite lt0r_neq0 // addr_gt0 // ltr01.
Qed.

(* for every set of outcomes, finite or not *)
Theorem L_of_mechanisms_sets (b eps : R) (D : nat) (f f' : int) (S : set int) :
  0 < eps -> 0 < b -> D%:R / eps <= b -> (`|f - f'| <= D)%N ->
  (\esum_(y in S) (discrete_laplace b (y - f))%:E <= (expR eps)%:E * \esum_(y in S) (discrete_laplace b (y - f'))%:E)%E.
Proof.
move=> e0 b0 le df; have /andP[p0 p1] := scale_range b0.
apply: esum_within => [y|y|]; [exact: laplace_ge0 | exact: L_of_mechanisms le df | exact/ltW/expR_gt0].
Qed.

(* (L), several numbers: the changes of all of them add up to D at most, each has noise of scale b. For every set of vectors. *)
Theorem L_of_vectors (J : finType) (b eps : R) (D : nat) (f f' : J -> int) (S : set {ffun J -> int}) :
  0 < eps -> 0 < b -> D%:R / eps <= b -> (\sum_j `|f j - f' j| <= D)%N ->
  (\esum_(y in S) (laplace_vector (expR (- b^-1)) (fun j => y j - f j))%:E <=
   (expR eps)%:E * \esum_(y in S) (laplace_vector (expR (- b^-1)) (fun j => y j - f' j))%:E)%E.
Proof.
move=> e0 b0 le df; have /andP[p0 p1] := scale_range b0.
apply: esum_within => [y|y|]; [exact: laplace_vector_ge0 | | exact/ltW/expR_gt0].
apply: (le_trans (laplace_vector_ratio p0 p1 y df)); apply: ler_wpmul2r; first exact: laplace_vector_ge0.
exact: scale_ratio.
Qed.

(* (K1) for every set of vectors; Z is the sum of all weights, the same for both tables. *)
Theorem K1_sets (J : finType) (b eps Z : R) (D : nat) (f f' : J -> int) (S : set {ffun J -> int}) :
  0 < eps -> 0 < b -> D%:R / eps <= b -> 0 < Z -> (forall j, `|f j - f' j| <= D)%N ->
  (\esum_(y in S) (expR (- b^-1) ^+ size_of (fun j => y j - f j) / Z)%:E <=
   (expR eps)%:E * \esum_(y in S) (expR (- b^-1) ^+ size_of (fun j => y j - f' j) / Z)%:E)%E.
Proof.
move=> e0 b0 le Z0 df; have /andP[p0 p1] := scale_range b0.
apply: esum_within => [y|y|]; last exact/ltW/expR_gt0.
  by rewrite divr_ge0 ?exprn_ge0 // ltW.
rewrite mulrA; apply: ler_wpmul2r; first by rewrite invr_ge0 ltW.
apply: (le_trans (cube_ratio p0 p1 y df)); apply: ler_wpmul2r; first by rewrite exprn_ge0 // ltW.
exact: scale_ratio.
Qed.

(* the exponential mechanism with errors of sensitivity D *)
Definition exponential (C : finType) (eps : R) (D : nat) (err : C -> nat) :=
  normal (fun c => expR (- (eps * (err c)%:R / (2 * D%:R)))).

(* The exponential mechanism, answer by answer. *)
Theorem exponential_private (C : finType) (eps : R) (D : nat) (err err' : C -> nat) c : 0 < eps -> (0 < D)%N ->
  (forall c, err c <= err' c + D)%N -> (forall c, err' c <= err c + D)%N ->
  exponential eps D err c <= expR eps * exponential eps D err' c.
Proof.
move=> e0 D0 le le'.
have step (x y : nat) : (x <= y + D)%N ->
    expR (- (eps * y%:R / (2 * D%:R))) <= expR (eps / 2) * expR (- (eps * x%:R / (2 * D%:R))).
  move=> xy; rewrite -expRD ler_expR.
  have D1 : D%:R != 0 :> R by rewrite pnatr_eq0 -lt0n.
  have -> : eps / 2 = eps / (2 * D%:R) * D%:R by rewrite invfM mulrA divfK.
  rewrite ![eps * _ / _]mulrAC -mulrBr -mulrN ler_pmul2l; last by rewrite divr_gt0 // mulr_gt0 ?ltr0n.
  by rewrite ler_oppl opprB ler_subl_addr -natrD ler_nat.
have -> : expR eps = expR (eps / 2) ^+ 2 by rewrite -expRMm mulrC divfK // pnatr_eq0.
by apply: exponential_ratio => d; rewrite ?expR_gt0 // step.
Qed.

(* (J1) of mechanisms *)
Theorem J1 (J C : finType) (eps : R) (D : nat) (err err' : J -> C -> nat) (c : {ffun J -> C}) : 0 < eps -> (0 < D)%N ->
  (forall j c, err j c <= err' j c + D)%N -> (forall j c, err' j c <= err j c + D)%N ->
  exponential eps D (worst err) c <= expR eps * exponential eps D (worst err') c.
Proof. by move=> e0 D0 le le'; apply: exponential_private => // d; apply: worst_moves. Qed.

(* such a choice is a question that (F1) may be asked *)
Theorem J1_is_a_claim (J C : finType) (eps : R) (D : nat) (err err' : J -> C -> nat) (c0 : C) : 0 < eps -> (0 < D)%N ->
  (forall j c, err j c <= err' j c + D)%N -> (forall j c, err' j c <= err j c + D)%N ->
  let p := exponential eps D (worst err) in let q := exponential eps D (worst err') in
  [/\ is_law p, is_law q & within expR (fun=> true) eps 0 p q].
Proof.
move=> e0 D0 le le' p q.
have law (e : J -> C -> nat) : is_law (exponential eps D (worst e)).
  split=> [c|]; last by apply: exponential_law => [c|]; [exact: expR_gt0 | exists [ffun=> c0]].
  by rewrite divr_ge0 ?(ltW (expR_gt0 _)) // sumr_ge0 // => d _; exact/ltW/expR_gt0.
split; [exact: law | exact: law |]; have := @pointwise_within R expR _ (fun=> true) eps p q; apply => c _.
exact: J1.
Qed.

End Instances.
