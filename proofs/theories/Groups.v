(* count by group and the crowding test: (B1), (B2) and (X) of count. The extension of a part of a table, what one more record does to
   it, and sums over groups. Axioms: the three of mathcomp-analysis. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.classical Require Import boolp classical_sets.
From mathcomp.analysis Require Import reals constructive_ereal sequences esum exp.
From wallflower Require Import Extension Noise Real Count.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Local Open Scope classical_set_scope.

Section Parts.
Variables (R : realType) (I : finType) (T : Type) (near : T -> T -> bool).
Notation table := (I -> T).
Implicit Types (A : {set I}) (X : table) (k L : nat).

(* The extension of the records A of a table, k neighbours and the cap L: distances are taken within A. *)
Definition E_on k L X A : R :=
  sup [set x | exists2 a : allocation R I, feasible k L%:R A (graph near X) a & worth A a = x].

(* The supremum exists. *)
Lemma E_on_has k L X A :
  has_sup [set x : R | exists2 a : allocation R I, feasible k L%:R A (graph near X) a & worth A a = x].
Proof.
split; first by exists (worth A (nothing R I)), (nothing R I) => //; apply: nothing_feasible; rewrite ler0n.
by exists (inliers k A (graph near X))%:R => _ [a fa <-]; apply: worth_le_inliers fa.
Qed.

(* It depends on the records of A only. *)
Lemma E_on_ext k L X X' A : (forall j, j \in A -> X' j = X j) -> E_on k L X A = E_on k L X' A.
Proof.
move=> same; rewrite /E_on; congr sup; apply/seteqP.
have ee : edge A (graph near X) =2 edge A (graph near X').
  move=> i j; rewrite /edge /graph; case: (boolP (i \in A)) => //= iA; case: (boolP (j \in A)) => //= jA.
  by rewrite !same.
split=> x [a fa <-]; exists a => //; first exact: feasible_ext fa.
by apply: feasible_ext fa => i j; rewrite ee.
Qed.

(* One more record raises it by 0 to L + 1: the step of (E), (B1) and (X). *)
Lemma E_on_add k L X A v : v \in A -> E_on k L X (A :\ v)%SET <= E_on k L X A <= E_on k L X (A :\ v)%SET + (L%:R + 1).
Proof.
move=> vA; apply/andP; split.
  apply: sup_le_ub; first by case: (E_on_has k L X (A :\ v)%SET).
  move=> _ [a fa <-]; have [b fb eb] := feasible_add (ler0n _ _) fa.
  by apply: sup_upper_bound; [exact: E_on_has | exists b].
apply: sup_le_ub; first by case: (E_on_has k L X A).
move=> _ [a fa <-]; have [b fb le] := feasible_remove vA fa.
rewrite -ler_subl_addr; apply: (le_trans le).
by apply: sup_upper_bound; [exact: E_on_has | exists b].
Qed.

(* The count of outliers of a part, before noise. *)
Definition count_on k L X A : R := #|A|%:R - E_on k L X A.

(* One more record lowers it by L at most and raises it by 1 at most. *)
Lemma count_on_add k L X A v : v \in A -> - L%:R <= count_on k L X A - count_on k L X (A :\ v)%SET <= 1.
Proof.
move=> vA; have /andP[lo up] := E_on_add k L X vA; rewrite /count_on (cardsD1 v A) vA natrD.
set c := #|_|%:R; set x := E_on _ _ _ A in lo up *; set y := E_on _ _ _ _ in lo up *.
have -> : true%:R + c - x - (c - y) = 1 + (y - x) by rewrite opprB [y - c]addrC addrACA addrK [- x + _]addrC.
rewrite ger_addl subr_le0 lo andbT -subr_ge0 opprK [1 + _]addrC -addrA [1 + _]addrC addrAC subr_ge0.
exact: up.
Qed.
End Parts.

Section Groups.
Variables (R : realType) (I G : finType) (T : Type) (near : T -> T -> bool) (k L : nat) (group : T -> G).
Hypothesis L_ge2 : (2 <= L)%N.
Notation table := (I -> T).

(* The records of a group. *)
Definition members (X : table) (g : G) : {set I} := [set j | group (X j) == g]%SET.
(* The count of a group. *)
Definition group_count (X : table) (g : G) : R := count_on R near k L X (members X g).

(* Groups that the replaced record neither leaves nor joins keep their counts. *)
Lemma other_groups v X X' g : replaced v X X' -> g != group (X v) -> g != group (X' v) ->
  group_count X g = group_count X' g.
Proof.
move=> same gv gv'.
have mm : members X g = members X' g.
  apply/setP => j; rewrite !inE; have [->|jv] := eqVneq j v; last by rewrite same.
  by rewrite eq_sym (negbTE gv) eq_sym (negbTE gv').
rewrite /group_count /count_on mm; congr (_ - _); apply: E_on_ext => j; rewrite inE => /eqP gj.
by apply: same; apply: contraNneq gv' => <-; rewrite gj.
Qed.

(* The records of a group, but the replaced one, have the same count by themselves in both tables. *)
Lemma group_rest v X X' (A : {set I}) : replaced v X X' ->
  count_on R near k L X (A :\ v)%SET = count_on R near k L X' (A :\ v)%SET.
Proof.
by move=> same; rewrite /count_on; congr (_ - _); apply: E_on_ext => j; rewrite in_setD1 => /andP[jv _]; apply: same.
Qed.

(* A group that the record leaves or joins moves by L at most. *)
Lemma left_group v X X' : replaced v X X' -> group (X' v) != group (X v) ->
  `|group_count X (group (X v)) - group_count X' (group (X v))| <= L%:R.
Proof.
move=> same ne; rewrite /group_count; set A := members X _.
have -> : members X' (group (X v)) = (A :\ v)%SET.
  apply/setP => j; rewrite !inE; have [->|jv] := eqVneq j v; last by rewrite same.
  by rewrite (negbTE ne).
have vA : v \in A by rewrite inE.
rewrite -(group_rest A same); have /andP[lo up] := count_on_add R near k L X vA.
rewrite ler_norml lo (le_trans up) // ler1n; exact: ltnW.
Qed.

(* A group that the record stays in moves by L + 1 at most. *)
Lemma kept_group v X X' : replaced v X X' -> group (X' v) = group (X v) ->
  `|group_count X (group (X v)) - group_count X' (group (X v))| <= L%:R + 1.
Proof.
move=> same eqg; rewrite /group_count; set A := members X _.
have -> : members X' (group (X v)) = A.
  by apply/setP => j; rewrite !inE; have [->|jv] := eqVneq j v; [rewrite eqg | rewrite same].
have vA : v \in A by rewrite inE.
have /andP[lo up] := count_on_add R near k L X vA; have /andP[lo' up'] := count_on_add R near k L X' vA.
rewrite -(group_rest A same) in lo' up'.
set x := count_on _ _ _ _ X A in lo up *; set y := count_on _ _ _ _ X' A in lo' up' *; set z := count_on _ _ _ _ _ _ in lo up lo' up'.
have -> : x - y = (x - z) - (y - z) by rewrite opprB addrA subrK.
rewrite ler_norml; apply/andP; split.
  by apply: le_trans (ler_sub lo up'); rewrite [- (_ + 1)]opprD.
by apply: (le_trans (ler_sub up lo')); rewrite opprK addrC.
Qed.

(* (B1): all counts together move by 2 L at most. *)
Theorem B1_sum v (X X' : table) : replaced v X X' -> \sum_g `|group_count X g - group_count X' g| <= 2%:R * L%:R.
Proof.
move=> same; have [eqg|ne] := eqVneq (group (X' v)) (group (X v)).
  rewrite (bigD1 (group (X v))) //= [X in _ + X]big1 ?addr0; last first.
    by move=> g gv; rewrite (other_groups same) ?subrr ?normr0 // eqg.
  apply: (le_trans (kept_group same eqg)); rewrite mulr_natl mulr2n ler_add2l ler1n; exact: ltnW.
rewrite (bigD1 (group (X v))) //= (bigD1 (group (X' v))) //= [X in _ + (_ + X)]big1 ?addr0; last first.
  by move=> g /andP[gv gv']; rewrite (other_groups same) ?subrr ?normr0.
rewrite mulr_natl mulr2n; apply: ler_add; first exact: left_group.
rewrite distrC; apply: left_group; last by rewrite eq_sym.
exact: replaced_sym.
Qed.

End Groups.

Section Crowding.
Variables (R : realType) (I : finType) (T : Type) (near : T -> T -> bool) (k K : nat).
Notation table := (I -> T).
(* The crowding of one table. *)
Definition crowding_of (X : table) : R :=
  E_on R near k k X (finset.setTfor (Phant I)) - E_on R near K K X (finset.setTfor (Phant I)).

(* (X): one replaced record moves the crowding by k + K + 2 at most. *)
Theorem X_crowding v X X' : replaced v X X' -> `|crowding_of X - crowding_of X'| <= k%:R + K%:R + 2%:R.
Proof.
move=> same; rewrite /crowding_of; set A := finset.setTfor _; have vA : v \in A by rewrite inE.
have ext m : E_on R near m m X (A :\ v)%SET = E_on R near m m X' (A :\ v)%SET.
  by apply: E_on_ext => j; rewrite in_setD1 => /andP[jv _]; apply: same.
have close m : `|E_on R near m m X A - E_on R near m m X' A| <= m%:R + 1.
  have /andP[lo up] := E_on_add R near m m X vA; have /andP[lo' up'] := E_on_add R near m m X' vA.
  rewrite -ext in lo' up'; rewrite ler_distl; apply/andP; split.
    by rewrite ler_subl_addr (le_trans up') // ler_add2r.
  by rewrite (le_trans up) // ler_add2r.
have -> : E_on R near k k X A - E_on R near K K X A - (E_on R near k k X' A - E_on R near K K X' A) =
          (E_on R near k k X A - E_on R near k k X' A) - (E_on R near K K X A - E_on R near K K X' A).
  by rewrite !opprB [X in _ + X = _]addrC addrACA [- E_on _ _ _ _ _ _ + _]addrC.
apply: (le_trans (ler_norm_sub _ _)); apply: (le_trans (ler_add (close k) (close K))).
by rewrite addrACA -natrD.
Qed.
End Crowding.
