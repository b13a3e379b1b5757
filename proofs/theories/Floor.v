(* (Q2) of count: the bound from below moves by at most D. A direct proof, without the duality of proof.md. No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra.
From wallflower Require Import Extension.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Floor.
Variables (R : realFieldType) (I : finType) (k : nat) (D : R).
Variables (e joined : rel I).
Implicit Types (A Q : {set I}) (lam : I -> R).

(* Outliers among the records A. *)
Definition out A := [set j in A | (degree A e j < k)%N].
(* How many near records an outlier misses. *)
Definition missing A j := (k - degree A e j)%N.
(* Records that are pairwise joined. *)
Definition clique Q := forall i j, i \in Q -> j \in Q -> i != j -> joined i j.

(* The constraints of the bound from below. *)
Record packing A lam : Prop := Packing {
  lam_range : forall j, j \in out A -> 0 <= lam j <= 1;
  light : forall Q, Q \subset out A -> clique Q -> \sum_(j in Q) lam j / (missing A j)%:R <= D - 1 }.

(* What it maximises. *)
Definition floor_of A lam := \sum_(j in out A) lam j.

(* floor <= number of outliers *)
Lemma floor_le_out A lam : packing A lam -> floor_of A lam <= #|out A|%:R.
Proof.
move=> pl; rewrite -sum1_card natr_sum; apply: ler_sum => j jo.
by have /andP[] := lam_range pl jo.
Qed.

(* It is reached by all ones only, so exactly where no clique of outliers is too heavy for them. *)
Lemma floor_full A lam : packing A lam -> floor_of A lam = #|out A|%:R -> forall j, j \in out A -> lam j = 1.
Proof.
move=> pl; rewrite -sum1_card natr_sum => /eqP; rewrite eq_sym -subr_eq0 -sumrB => /eqP zero j jo.
have ge0 i : i \in out A -> 0 <= 1 - lam i by move=> io; rewrite subr_ge0; have /andP[] := lam_range pl io.
by have /eqP := psumr_eq0P ge0 zero jo; rewrite subr_eq0 => /eqP <-.
Qed.

(* Removing v lowers the degree of those near v by 1. *)
Lemma degree_less A v j : v \in A -> j \in A -> j != v -> degree A e j = (degree (A :\ v) e j + edge A e v j)%N.
Proof.
move=> vA jA jv; rewrite /degree (cardD1 v) addnC; congr (_ + _)%N.
by apply: eq_card => i; rewrite !inE edge_less jv andbT andbC.
Qed.

(* An outlier misses at least one, so that 1/missing is defined. *)
Lemma out_gt0 A j : j \in out A -> (0 < missing A j)%N.
Proof. by rewrite inE subn_gt0 => /andP[]. Qed.

(* Outliers stay outliers when another record is removed. *)
Lemma out_less A v j : v \in A -> j \in out A -> j != v -> j \in out (A :\ v).
Proof.
move=> vA; rewrite !inE => /andP[jA jd] jv; rewrite jv jA /=.
by apply: leq_ltn_trans jd; rewrite (degree_less vA jA jv) leq_addr.
Qed.

(* Removing a record loses at most 1. *)
Lemma floor_remove A v lam : v \in A -> packing A lam ->
  exists2 lam', packing (A :\ v) lam' & floor_of A lam - 1 <= floor_of (A :\ v) lam'.
Proof.
move=> vA [lr li]; pose lam' j := if j \in out A then lam j else 0; exists lam'; last first.
  rewrite ler_subl_addr addrC /floor_of.
  apply: (@le_trans _ _ (1 + \sum_(j in out A :\ v) lam j)); last first.
    rewrite ler_add2l [leLHS]big_mkcond [leRHS]big_mkcond; apply: ler_sum => j _; rewrite in_setD1 /lam'.
    case: (boolP (j \in out A)) => jo; last by rewrite andbF; case: ifP.
    rewrite andbT; case: ifP => jv; first by rewrite (out_less vA jo jv).
    by case: ifP => // _; have /andP[] := lr _ jo.
  case: (boolP (v \in out A)) => vo.
    by rewrite (big_setD1 v) //= ler_add2r; have /andP[] := lr _ vo.
  suff -> : out A :\ v = out A by rewrite ler_addr ler01.
  by apply/setP => j; rewrite in_setD1; case: eqP => //= ->; rewrite (negbTE vo).
split.
- by move=> j _; rewrite /lam'; case: ifP => [/lr //|_]; rewrite lexx ler01.
- move=> Q Qo Qc.
  have sub : Q :&: out A \subset out A by apply: subsetIr.
  have cl : clique (Q :&: out A) by move=> i j; rewrite !in_setI => /andP[iQ _] /andP[jQ _]; apply: Qc.
  apply: le_trans (li _ sub cl); rewrite [leLHS]big_mkcond [leRHS]big_mkcond; apply: ler_sum => j _.
  rewrite in_setI /lam'; case: (boolP (j \in Q)) => jQ //=; case: (boolP (j \in out A)) => jo; last by rewrite mul0r.
  have /andP[l0 _] := lr _ jo; apply: ler_wpmul2l => //.
  have m0 := out_gt0 jo; have jA : j \in A by move: jo; rewrite inE => /andP[].
  have jv : j != v by have := subsetP Qo _ jQ; rewrite !inE => /andP[/andP[]].
  rewrite lef_pinv ?posrE ?ltr0n // ?ler_nat; last by apply: leq_trans m0 _; rewrite leq_sub2l // (degree_less vA jA jv) leq_addr.
  by rewrite leq_sub2l // (degree_less vA jA jv) leq_addr.
Qed.

(* those near one record are a clique: (Q1) *)
Lemma floor_add A v lam : v \in A ->
  (forall i j, edge A e v i -> edge A e v j -> i != j -> joined i j) -> packing (A :\ v) lam ->
  exists2 lam', packing A lam' & floor_of (A :\ v) lam - (D - 1) <= floor_of A lam'.
Proof.
move=> vA Q1 [lr li]; pose m j : R := (missing (A :\ v) j)%:R.
pose lost j := if edge A e v j then lam j / m j else 0.
pose lam' j := if j \in out (A :\ v) then lam j - lost j else 0.
have m1 j : j \in out (A :\ v) -> 1 <= m j by move=> /out_gt0; rewrite ler1n.
have m0 j : j \in out (A :\ v) -> 0 < m j by move=> /m1; apply: lt_le_trans; rewrite ltr01.
have lost0 j : j \in out (A :\ v) -> 0 <= lost j.
  move=> jo; rewrite /lost; case: ifP => // _; have /andP[l0 _] := lr _ jo.
  by rewrite divr_ge0 // ltW // m0.
have lostl j : j \in out (A :\ v) -> lost j <= lam j.
  move=> jo; have /andP[l0 _] := lr _ jo; rewrite /lost; case: ifP => // _.
  by rewrite ler_pdivr_mulr ?m0 // ler_pemulr // m1.
have missE j : j \in A -> j != v -> missing A j = (missing (A :\ v) j - edge A e v j)%N.
  by move=> jA jv; rewrite /missing (degree_less vA jA jv) subnDA.
exists lam'.
split.
- move=> j _; rewrite /lam'; case: ifP => jo; last by rewrite lexx ler01.
  have /andP[l0 l1] := lr _ jo; rewrite subr_ge0 lostl //= ler_subl_addr (le_trans l1) // ler_addl.
  exact: lost0.
- move=> Q Qo Qc.
  have sub : Q :\ v \subset out (A :\ v).
    by apply/subsetP => j; rewrite in_setD1 => /andP[jv jQ]; apply: out_less => //; apply: (subsetP Qo).
  have cl : clique (Q :\ v) by move=> i j; rewrite !in_setD1 => /andP[_ iQ] /andP[_ jQ]; apply: Qc.
  apply: le_trans (li _ sub cl); rewrite [leLHS]big_mkcond [leRHS]big_mkcond; apply: ler_sum => j _.
  rewrite in_setD1; case: (boolP (j \in Q)) => jQ; rewrite ?andbF ?andbT //.
  have [->|jv] := eqVneq j v.
    by rewrite /lam' inE in_setD1 eqxx /= mul0r.
  have jO := subsetP Qo _ jQ; have jo := out_less vA jO jv; rewrite /lam' jo /=.
  have jA : j \in A by move: jO; rewrite inE => /andP[].
  have := out_gt0 jO; rewrite (missE _ jA jv) -/(m j) /lost; case: ifP => ej /=; last by rewrite subr0 subn0.
  rewrite subn_gt0 => m2.
  have mm : (missing (A :\ v) j - 1)%N%:R = m j - 1 by rewrite natrB // ltnW.
  have mne : m j - 1 != 0 by rewrite -mm pnatr_eq0 -lt0n subn_gt0.
  rewrite mm -[X in X - _]mulr1 -{1}(@divff _ (m j)) ?lt0r_neq0 ?m0 // mulrCA -{2}[lam j / m j]mul1r -mulrBl.
  by rewrite mulrAC divff // mul1r.
rewrite ler_subl_addr addrC -ler_subl_addr /floor_of.
have -> : \sum_(j in out A) lam' j = \sum_(j in out (A :\ v)) lam' j.
  rewrite [LHS]big_mkcond [RHS]big_mkcond; apply: eq_bigr => j _; rewrite /lam'.
  case: (boolP (j \in out (A :\ v))) => jo; last by case: ifP.
  case: ifP => // /negbT jO.
  have := jo; rewrite inE in_setD1 => /andP[/andP[jv jA] jd].
  move: jO; rewrite inE jA /= (degree_less vA jA jv) -leqNgt /lost /m /missing.
  case: (edge A e v j) => /= kd; last by rewrite addn0 leqNgt jd in kd.
  have -> : k = (degree (A :\ v) e j).+1 by apply/eqP; rewrite eqn_leq jd -addn1 kd.
  by rewrite subSnn divr1 subrr.
rewrite -sumrB.
have sub : [set j in out (A :\ v) | edge A e v j] \subset out (A :\ v) by apply/subsetP => j; rewrite inE => /andP[].
have cl : clique [set j in out (A :\ v) | edge A e v j].
  by move=> i j; rewrite !inE => /andP[_ ei] /andP[_ ej]; apply: Q1.
apply: le_trans (li _ sub cl); rewrite [leLHS]big_mkcond [leRHS]big_mkcond; apply: ler_sum => j _.
rewrite inE /lam' /lost; case: (boolP (j \in out (A :\ v))) => jo //=.
by case: ifP => _; rewrite ?subr0 ?subKr ?subrr.
Qed.

(* The converse of floor_full: where no clique of outliers is too heavy, all ones are feasible and worth the number of outliers. *)
Lemma floor_ones A : (forall Q, Q \subset out A -> clique Q -> \sum_(j in Q) (missing A j)%:R^-1 <= D - 1) ->
  packing A (fun=> 1) /\ floor_of A (fun=> 1) = #|out A|%:R.
Proof.
move=> weighs; split; last by rewrite /floor_of -sum1_card natr_sum.
split=> [j _|Q Qo Qc]; first by rewrite ler01 lexx.
by under eq_bigr do rewrite mul1r; apply: weighs.
Qed.
End Floor.

Section Tables.
Variables (R : realFieldType) (I : finType) (T : Type) (near joined : T -> T -> bool) (k : nat) (D : R).
(* (Q1) *)
Hypothesis near_joined : forall a b v, near v a -> near v b -> joined a b.
Notation table := (I -> T).
(* A feasible point of a table. *)
Definition packed (X : table) (lam : I -> R) := packing k D (graph near X) (graph joined X) setT lam.
(* What it is worth. *)
Definition floor_value (X : table) (lam : I -> R) := floor_of k (graph near X) setT lam.

(* Feasibility depends on the pairs that are there. *)
Lemma packing_ext A (e e' c c' : rel I) (lam : I -> R) : edge A e =2 edge A e' ->
  (forall i j, i \in A -> j \in A -> c i j = c' i j) -> packing k D e c A lam -> packing k D e' c' A lam.
Proof.
move=> ee cc [lr li].
have dg j : degree A e j = degree A e' j by apply: eq_card => i; rewrite !inE ee.
have eo : out k e A = out k e' A by apply/setP => j; rewrite !inE dg.
split; rewrite -eo // => Q Qo Qc; apply: le_trans (li Q Qo _).
  by apply: ler_sum => j _; rewrite /missing dg.
move=> i j iQ jQ ij; rewrite cc; first exact: Qc.
  by have := subsetP Qo _ iQ; rewrite inE => /andP[].
by have := subsetP Qo _ jQ; rewrite inE => /andP[].
Qed.

(* (Q2): one replaced record moves the bound from below by at most D. *)
Theorem Q2_replace v (X X' : table) lam : replaced v X X' -> packed X lam ->
  exists2 lam', packed X' lam' & floor_value X lam - D <= floor_value X' lam'.
Proof.
move=> same pl.
have [l1 p1 f1] := floor_remove (in_setT v) pl.
have ee : edge (setT :\ v) (graph near X) =2 edge (setT :\ v) (graph near X').
  move=> i j; rewrite !edge_less /edge /graph.
  by case: (eqVneq i v) => iv; rewrite ?andbF //; case: (eqVneq j v) => jv; rewrite ?andbF // !same.
have cc i j : i \in setT :\ v -> j \in setT :\ v -> graph joined X i j = graph joined X' i j.
  by rewrite !in_setD1 => /andP[iv _] /andP[jv _]; rewrite /graph !same.
have p1' := packing_ext ee cc p1.
have near1 i j : edge setT (graph near X') v i -> edge setT (graph near X') v j -> i != j -> graph joined X' i j.
  by move=> /and4P[_ _ _ vi] /and4P[_ _ _ vj] _; apply: near_joined vi vj.
have [l2 p2 f2] := floor_add (in_setT v) near1 p1'.
exists l2 => //; apply: le_trans f2.
have -> : floor_of k (graph near X') (setT :\ v) l1 = floor_of k (graph near X) (setT :\ v) l1.
  by apply: eq_bigl => j; rewrite !inE /degree (eq_card (B := [pred i | edge (setT :\ v) (graph near X) i j])) // => i; rewrite !inE ee.
by rewrite ler_subr_addr addrA subrK.
Qed.
End Tables.
