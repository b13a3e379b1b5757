(* count, mechanism extension, from (E) to the noise: E as a supremum, any V within eta, the rounding of (N), noise of (L). *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.classical Require Import boolp classical_sets.
From mathcomp.analysis Require Import reals constructive_ereal sequences esum exp.
From wallflower Require Import Extension Noise Real.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Local Open Scope classical_set_scope.

Section Count.
Variables (R : realType) (I : finType) (T : Type) (near : T -> T -> bool) (k L : nat).
Notation table := (I -> T).
Notation slack := (L%:R : R).

(* All values that a feasible allocation can have. *)
Definition worths (X : table) : set R := [set x | exists2 a : allocation R I, allowed near k slack X a & value a = x].
(* E as the theorem uses it: a supremum, so that no proof is needed that the maximum is reached. *)
Definition E (X : table) : R := sup (worths X).

(* The supremum exists: zeros are feasible, and no allocation is worth more than the inliers. *)
Lemma E_has X : has_sup (worths X).
Proof.
split; first by exists (value (nothing R I)), (nothing R I) => //; apply: nothing_feasible; rewrite ler0n.
by exists (inliers k (finset.setTfor (Phant I)) (graph near X))%:R => _ [a fa <-]; apply: E_le_inliers fa.
Qed.

(* (E), first half: an answer made from E never counts an outlier too few. *)
Theorem E_at_most_inliers X : E X <= (inliers k (finset.setTfor (Phant I)) (graph near X))%:R.
Proof.
apply: sup_le_ub; first by case: (E_has X).
by move=> _ [a fa <-]; apply: E_le_inliers fa.
Qed.

(* One direction of (E); the other is the same with the tables exchanged. *)
Lemma E_drop v X X' : replaced v X X' -> E X - (slack + 1) <= E X'.
Proof.
move=> same; rewrite ler_subl_addr; apply: sup_le_ub; first by case: (E_has X).
move=> _ [a fa <-]; have [b fb le] := E_replace (ler0n _ _) same fa.
rewrite -ler_subl_addr; apply: (le_trans le); apply: sup_upper_bound; first exact: E_has.
by exists b.
Qed.

(* (E), second half: what calibrates the noise. *)
Theorem E_lipschitz v X X' : replaced v X X' -> `|E X - E X'| <= slack + 1.
Proof.
move=> same; rewrite ler_distl (E_drop (replaced_sym same)) -ler_subl_addr.
exact: E_drop same.
Qed.

(* (N): V is what the program found; half a step of 1/128 is lost at most *)
Definition steps (n : nat) (V : R) : int := floor (128%:R * (n%:R - V) + 2%:R^-1).
(* What the program calls the sensitivity, in steps of 1/128. *)
Definition sensitivity : nat := (128 * (L + 1) + 1)%N.

(* Two numbers less than m + 1 apart have whole parts at most m + 1 apart. *)
Lemma floor_close (x y : R) (m : nat) : x < y + m.+1%:R -> floor x <= floor y + m.+1%:Z.
Proof.
move=> lt; rewrite -ltz_addr1 -floor_lt_int; apply: (lt_le_trans lt).
by rewrite !rmorphD /= addrAC ler_add2r ltW // lt_succ_floor.
Qed.

(* One direction of (N). *)
Lemma steps_drop n (V V' : R) : V' - V <= slack + 1 + 256%:R^-1 -> steps n V <= steps n V' + sensitivity%:Z.
Proof.
move=> le; rewrite /steps /sensitivity addn1; apply: floor_close.
rewrite addrAC ltr_add2r -ltr_subl_addl -mulrBr.
have -> : n%:R - V - (n%:R - V') = V' - V by rewrite opprB addrC addrA subrK.
apply: (le_lt_trans (ler_wpmul2l _ le)); first by rewrite ler0n.
rewrite mulrDr -(natrD _ L 1) -natrM -[(128 * (L + 1)).+1]addn1 [in X in _ < X]natrD ltr_add2l.
by rewrite ltr_pdivr_mulr ?ltr0n // mul1r ltr_nat.
Qed.

(* (N): after rounding to steps, a value that is 1/256 off at most moves by at most 128 (L + 1) + 1 steps. *)
Theorem N_steps n (V V' : R) : `|V - V'| <= slack + 1 + 256%:R^-1 -> (`|steps n V - steps n V'| <= sensitivity)%N.
Proof.
rewrite -lez_nat abszE !ler_distl => /andP[lo up]; apply/andP; split.
- by rewrite ler_subl_addr; apply: steps_drop; rewrite ler_subl_addr addrC -ler_subl_addr ler_subl_addl addrC.
- by apply: steps_drop; rewrite ler_subl_addr addrC -ler_subl_addr.
Qed.

(* The theorem of count for extension and a pure loss: V is any function of the table within 1/256 of E. *)
Theorem count_extension (V : table -> R) (n : nat) (b eps : R) v (X X' : table) (y : int) :
  (forall X, E X - 256%:R^-1 <= V X <= E X) -> replaced v X X' ->
  0 < eps -> 0 < b -> sensitivity%:R / eps <= b ->
  discrete_laplace b (y - steps n (V X)) <= expR eps * discrete_laplace b (y - steps n (V X')).
Proof.
move=> close same e0 b0 le; apply: L_of_mechanisms le _ => //; apply: N_steps.
have /andP[l u] := close X; have /andP[l' u'] := close X'.
have := E_lipschitz same; rewrite !ler_norml => /andP[lo up]; apply/andP; split.
- by apply: le_trans (ler_sub l u'); rewrite opprD addrAC ler_add2r.
- by apply: (le_trans (ler_sub u l')); rewrite opprB addrCA addrC ler_add2r.
Qed.

(* The same for every set of answers, which is the definition of differential privacy. *)
Theorem count_extension_sets (V : table -> R) (n : nat) (b eps : R) v (X X' : table) (S : set int) :
  (forall X, E X - 256%:R^-1 <= V X <= E X) -> replaced v X X' ->
  0 < eps -> 0 < b -> sensitivity%:R / eps <= b ->
  (\esum_(y in S) (discrete_laplace b (y - steps n (V X)))%:E <=
   (expR eps)%:E * \esum_(y in S) (discrete_laplace b (y - steps n (V X')))%:E)%E.
Proof.
move=> close same e0 b0 le; have /andP[p0 p1] := scale_range b0.
apply: esum_within => [y|y|]; [exact: laplace_ge0 | exact: count_extension close same e0 b0 le | exact/ltW/expR_gt0].
Qed.

End Count.
