(* (E) of queries/count: the slack linear programme moves by at most slack + 1.
   Over any ordered field (rationals, reals), any finite set of places, any relation. No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Programme.
Variables (R : realFieldType) (I : finType) (k : nat) (L : R).

(* y_j, mu_j, and f_ij from supplier i to consumer j *)
Record allocation := Allocation { got : I -> R; cap : I -> R; flow : I -> I -> R }.

(* A: the records that are there; e: who is near whom. A record is left out by its index. *)
Definition edge (A : {set I}) (e : rel I) i j := [&& i \in A, j \in A, i != j & e i j].

(* The constraints of the programme, as proof.md lists them. Without cap_ge0 the theorem E <= I is false: cap_ge0_is_needed. *)
Record feasible (A : {set I}) (e : rel I) (a : allocation) : Prop := Feasible {
  got_range : forall j, j \in A -> 0 <= got a j <= 1;
  cap_ge0 : forall j, j \in A -> 0 <= cap a j;
  flow_range : forall i j, edge A e i j -> 0 <= flow a i j <= cap a j;
  demand : forall j, j \in A ->
    got a j + (k%:R - 1) * cap a j <= \sum_(i | edge A e i j) flow a i j;
  supply : forall i, i \in A -> \sum_(j | edge A e i j) flow a i j <= L }.

(* What the programme maximises. *)
Definition worth (A : {set I}) a := \sum_(j in A) got a j.
(* How many records are near j, other than j. *)
Definition degree A e j := #|[pred i | edge A e i j]|.
(* Records with at least k near them. *)
Definition inliers (A : {set I}) e := #|[pred j in A | (k <= degree A e j)%N]|.

(* Feasibility depends on the edges only, so a record that is not there does not matter. *)
Lemma feasible_ext A e e' a : edge A e =2 edge A e' -> feasible A e a -> feasible A e' a.
Proof.
move=> ee [g c f d s]; split=> //.
- by move=> i j; rewrite -ee; apply: f.
- by move=> j jA; rewrite -(eq_bigl _ _ (fun i => ee i j)); apply: d.
- by move=> i iA; rewrite -(eq_bigl _ _ (fun j => ee i j)); apply: s.
Qed.

(* The allocation of zeros, which shows that the programme always has a feasible point. *)
Definition nothing := Allocation (fun _ => 0) (fun _ => 0) (fun _ _ => 0).

(* Zeros are feasible. *)
Lemma nothing_feasible A e : 0 <= L -> feasible A e nothing.
Proof.
move=> L0; split=> //=.
- by move=> *; rewrite lexx ler01.
- by move=> *; rewrite lexx.
- by move=> j _; rewrite big1 // mulr0 addr0.
- by move=> i _; rewrite big1.
Qed.

(* E <= I *)
Lemma outlier_gets_nothing A e a j : feasible A e a -> j \in A -> (degree A e j < k)%N -> got a j = 0.
Proof.
move=> fa jA few; apply/eqP; rewrite eq_le; have /andP[-> _] := got_range fa jA; rewrite andbT.
have up : \sum_(i | edge A e i j) flow a i j <= (degree A e j)%:R * cap a j.
  rewrite mulr_natl /degree -sumr_const; apply: ler_sum => i ij.
  by have /andP[] := flow_range fa ij.
have := le_trans (demand fa jA) up; rewrite -ler_subr_addr -mulrBl => h.
apply: le_trans h _; apply: mulr_le0_ge0; last exact: (cap_ge0 fa).
by rewrite opprB addrA subr_le0 -[1]/(1%:R) -natrD ler_nat addn1.
Qed.

(* No allocation is worth more than the number of inliers. *)
Lemma worth_le_inliers A e a : feasible A e a -> worth A a <= (inliers A e)%:R.
Proof.
move=> fa; rewrite /worth (bigID (fun j => k <= degree A e j)%N) /= [X in _ + X]big1 ?addr0; last first.
  by move=> j /andP[jA]; rewrite -ltnNge; apply: outlier_gets_nothing.
rewrite /inliers -sum1_card natr_sum; apply: ler_sum => j /andP[jA _].
by have /andP[] := got_range fa jA.
Qed.

(* The edges that are left when v is removed. *)
Lemma edge_less A e v i j : edge (A :\ v) e i j = [&& edge A e i j, i != v & j != v].
Proof.
rewrite /edge !in_setD1; case: (i \in A); case: (j \in A); case: (i != j); case: (e i j);
by case: (i != v); case: (j != v).
Qed.

(* Adding a record: a feasible point stays feasible with zeros for the new one. *)
Lemma feasible_add A e a v : 0 <= L -> feasible (A :\ v) e a ->
  exists2 b, feasible A e b & worth A b = worth (A :\ v) a.
Proof.
move=> L0 [g c f d s].
have in0 j : j \in A -> j != v -> j \in A :\ v by move=> jA jv; rewrite in_setD1 jv.
have ed i j : edge A e i j -> i != v -> j != v -> edge (A :\ v) e i j.
  by rewrite edge_less => -> -> ->.
have ed' i j : edge (A :\ v) e i j -> [/\ edge A e i j, i != v & j != v].
  by rewrite edge_less => /and3P.
pose z j (x : R) := if j == v then 0 else x.
pose b := Allocation (fun j => z j (got a j)) (fun j => z j (cap a j)) (fun i j => z i (z j (flow a i j))).
exists b; last first.
  rewrite /worth [LHS]big_mkcond [RHS]big_mkcond; apply: eq_bigr => j _; rewrite in_setD1 /b /z /=.
  by case: (eqVneq j v) => //= _; case: ifP.
split; rewrite /b /z /=.
- by move=> j jA; case: eqP => [_|/eqP jv]; rewrite ?lexx ?ler01 //; apply: g; apply: in0.
- by move=> j jA; case: eqP => [_|/eqP jv] //; apply: c; apply: in0.
- move=> i j ij; have [_ jA _ _] := and4P ij.
  have [_|jv] := eqVneq j v; first by case: ifP; rewrite lexx.
  have [iv|iv] := eqVneq i v; last by apply: f; apply: ed.
  by rewrite lexx /=; apply: c; apply: in0.
- move=> j jA; have [jv|jv] := eqVneq j v.
    by rewrite mulr0 addr0 big1 // => i _; case: ifP.
  apply: (le_trans (d _ (in0 _ jA jv))); rewrite [leLHS]big_mkcond [leRHS]big_mkcond; apply: ler_sum => i _.
  case: ifP => [/ed'[-> iv _]|no]; first by rewrite (negbTE iv).
  by case: ifP => // ij; case: eqVneq => // iv; rewrite (ed _ _ ij iv jv) in no.
- move=> i iA; have [iv|iv] := eqVneq i v; first by rewrite big1.
  apply: le_trans (s _ (in0 _ iA iv)); rewrite [leLHS]big_mkcond [leRHS]big_mkcond; apply: ler_sum => j _.
  case: (boolP (edge (A :\ v) e i j)) => [/ed'[-> _ jv]|no]; first by rewrite (negbTE jv).
  by case: ifP => // ij; case: eqVneq => // jv; rewrite (ed _ _ ij iv jv) in no.
Qed.

(* Removing a record loses at most slack + 1. *)
Lemma feasible_remove (A : {set I}) e a v : v \in A -> feasible A e a ->
  exists2 b, feasible (A :\ v) e b & worth A a - (L + 1) <= worth (A :\ v) b.
Proof.
move=> vA [g c f d s].
have sub j : j \in A :\ v -> j \in A by rewrite in_setD1 => /andP[].
pose lost j := if edge A e v j then flow a v j else 0.
have lost0 j : 0 <= lost j by rewrite /lost; case: ifP => // /f /andP[].
pose z j (x : R) := if lost j <= got a j then x else 0.
pose b := Allocation (fun j => z j (got a j - lost j)) (fun j => z j (cap a j)) (fun i j => z j (flow a i j)).
exists b; last first.
  have -> : worth A a = got a v + \sum_(j in A :\ v) got a j.
    by rewrite /worth (bigD1 v) //=; congr (_ + _); apply: eq_bigl => j; rewrite in_setD1 andbC.
  rewrite ler_subl_addr /worth /=.
  have step : \sum_(j in A :\ v) got a j - \sum_(j in A :\ v) z j (got a j - lost j) <= L.
    rewrite -sumrB; apply: le_trans (s v vA); rewrite [leRHS]big_mkcond /=.
    rewrite [leLHS]big_mkcond; apply: ler_sum => j _; case: ifP => [jA|_]; last exact: lost0.
    rewrite -/(lost j) /z; case: ifP => [_|]; first by rewrite subKr.
    by rewrite subr0 => /negbT; rewrite -ltNge => /ltW.
  have /andP[_ g1] := g _ vA; have := ler_add g1 step.
  by rewrite addrA ler_subl_addr [1 + L]addrC [X in _ <= X]addrC.
split; rewrite /b /z /=.
- move=> j /sub jA; have /andP[g0 g1] := g _ jA; case: ifP => [le|_]; last by rewrite lexx ler01.
  by rewrite subr_ge0 le /= ler_subl_addr (le_trans g1) // ler_addl.
- by move=> j /sub jA; case: ifP => // _; apply: c.
- move=> i j; rewrite edge_less => /and3P[ij _ _]; case: ifP => [_|]; [exact: f | by rewrite lexx].
- move=> j jA'; have jA := sub _ jA'; case: ifP => [le|_]; last first.
    by rewrite mulr0 addr0 big1.
  rewrite addrAC ler_subl_addr; apply: le_trans (d _ jA) _.
  rewrite big_mkcond (bigD1 v) //= -/(lost j) addrC ler_add2r.
  rewrite [leRHS]big_mkcond [leLHS]big_mkcond; apply: ler_sum => i _; rewrite edge_less.
  have jv : j != v by move: jA'; rewrite in_setD1 => /andP[].
  by rewrite jv andbT; case: (i != v); rewrite ?andbT ?andbF.
- move=> i iA'; have iA := sub _ iA'; apply: le_trans (s _ iA).
  rewrite [leRHS]big_mkcond [leLHS]big_mkcond; apply: ler_sum => j _; rewrite edge_less.
  case: (boolP (edge A e i j)) => //= ij; have /andP[f0 _] := f _ _ ij.
  by case: ifP => // _; case: ifP.
Qed.

End Programme.

(* Tables of records: T is any type of records, near any relation of two of them. *)
Section Tables.
Variables (R : realFieldType) (I : finType) (T : Type) (near : T -> T -> bool) (k : nat) (L : R).
Hypothesis L_ge0 : 0 <= L.

(* A table gives each place a record. *)
Definition table := I -> T.
(* Adjacent tables: all places but v have the same record. *)
Definition replaced v (X X' : table) := forall j, j != v -> X' j = X j.
(* Who is near whom in a table. *)
Definition graph (X : table) : rel I := fun i j => near (X i) (X j).
(* A feasible allocation of a table. *)
Definition allowed (X : table) (a : allocation R I) := feasible k L setT (graph X) a.
(* What it is worth. *)
Definition value (a : allocation R I) := worth setT a.
(* E is the maximum of the programme of X. *)
Definition is_max (X : table) E := (exists2 a, allowed X a & value a = E) /\ forall a, allowed X a -> value a <= E.

(* Adjacency is symmetric. *)
Lemma replaced_sym v X X' : replaced v X X' -> replaced v X' X.
Proof. by move=> h j jv; rewrite h. Qed.

(* (E): remove the record, then add the new one. Every feasible point of X has one of X' that is worth at most L + 1 less. *)
Theorem E_replace v X X' a : replaced v X X' -> allowed X a ->
  exists2 b, allowed X' b & value a - (L + 1) <= value b.
Proof.
move=> same fa.
have [b fb lb] := feasible_remove (in_setT v) fa.
have fb' : feasible k L (setT :\ v) (graph X') b.
  apply: feasible_ext fb => i j; rewrite !edge_less /edge /graph.
  by case: (eqVneq i v) => iv; rewrite ?andbF //; case: (eqVneq j v) => jv; rewrite ?andbF // !same.
have [d fd ed] := feasible_add L_ge0 fb'.
by exists d => //; rewrite /value ed.
Qed.

(* (E) for maxima, where they are reached. *)
Theorem E_max v X X' E E' : replaced v X X' -> is_max X E -> is_max X' E' -> `|E - E'| <= L + 1.
Proof.
move=> same [[a fa va] mE] [[a' fa' va'] mE']; rewrite ler_distl; apply/andP; split.
- have [b fb lb] := E_replace (replaced_sym same) fa'.
  by rewrite -va'; apply: le_trans lb (mE _ fb).
- have [b fb lb] := E_replace same fa.
  by rewrite -ler_subl_addr -va; apply: le_trans lb (mE' _ fb).
Qed.

(* what the program works with: any V that is at most eta below E *)
Lemma V_moves v X X' E E' V V' eta : replaced v X X' -> is_max X E -> is_max X' E' ->
  E - eta <= V <= E -> E' - eta <= V' <= E' -> `|V - V'| <= L + 1 + eta.
Proof.
move=> same mE mE' /andP[l u] /andP[l' u'].
have := E_max same mE mE'; rewrite !ler_norml => /andP[a b]; apply/andP; split.
- by apply: le_trans (ler_sub l u'); rewrite opprD addrAC ler_add2r.
- by apply: (le_trans (ler_sub u l')); rewrite opprB addrCA addrC ler_add2r.
Qed.

(* E is at most the number of inliers. *)
Theorem E_le_inliers X a : allowed X a -> value a <= (inliers k setT (graph X))%:R.
Proof. exact: worth_le_inliers. Qed.

End Tables.

(* slack + 1 is reached, by a star (k = 1) whose centre is replaced by a record that is near nobody. *)
Section Sharp.
Variables (R : realFieldType) (m : nat).
Let I : finType := [finType of option 'I_m.+1]. (* None is the centre *)
Let L : R := m.+1%:R.
(* Every leaf is near the centre, and no two leaves are near each other. *)
Definition star (i j : I) := (i == None) || (j == None).
(* The star. *)
Definition before (i : I) : I := i.
(* The star whose centre became another leaf: nobody is near anybody. *)
Definition after (i : I) : I := if i is Some _ then i else Some ord0.
(* The centre gives 1 to each leaf, and one leaf gives 1 to the centre. *)
Definition star_allocation := @Allocation R I (fun _ => 1) (fun _ => 1) (fun i j => ((i == None) || (i == Some ord0))%:R).

(* That allocation is feasible. *)
Lemma star_allowed : allowed star 1 L before star_allocation.
Proof.
split=> /=.
- by move=> j _; rewrite ler01 lexx.
- by move=> j _; exact: ler01.
- by move=> i j _; case: (_ || _); rewrite ?lexx ler01.
- move=> j _; rewrite subrr mul0r addr0; case: j => [j|].
    rewrite (bigD1 None) /=; last by rewrite /edge !in_setT.
    by rewrite ler_addl; apply: sumr_ge0 => i _; apply: ler0n.
  rewrite (bigD1 (Some ord0)) /=; last by rewrite /edge !in_setT.
  by rewrite ler_addl; apply: sumr_ge0 => i _; apply: ler0n.
- move=> [i|] _ /=.
    rewrite (big_pred1 None) /=.
      by rewrite /L ler_nat; case: (_ == _).
    by case=> [j|]; rewrite /edge !in_setT /graph /star /= ?andbF.
  rewrite (eq_bigl (fun j : I => j != None)) => [|[j|]]; rewrite /edge ?in_setT //=.
  rewrite sumr_const /L (_ : #|_| = m.+1) //.
  have c1 := cardC1 (None : I); rewrite [X in _ = X.-1]card_option card_ord /= in c1.
  by rewrite -[RHS]c1; apply: eq_card => j; rewrite !inE.
Qed.

(* L + 1 is reached, so no smaller noise would do: E falls from L + 1 to 0. *)
Theorem E_sharp : [/\ replaced None before after, is_max star 1 L before (L + 1) & is_max star 1 L after 0].
Proof.
split; first by case.
- split.
    exists star_allocation; first exact: star_allowed.
    by rewrite /value /worth /= sumr_const cardsT card_option card_ord -[m.+2]addn1 natrD.
  move=> a [g _ _ _ _]; rewrite /L -(natrD _ m.+1 1) addn1 /value /worth.
  apply: (@le_trans _ _ (\sum_(j in [set: I]) 1)); last by rewrite sumr_const cardsT card_option card_ord.
  by apply: ler_sum => j jI; have /andP[] := g _ jI.
- split.
    exists (@nothing R I); first by apply: nothing_feasible; rewrite ler0n.
    by rewrite /value /worth big1.
  move=> a fa; apply: le_trans (E_le_inliers fa) _; rewrite /inliers eq_card0 // => j.
  rewrite !inE /degree eq_card0 // => i; rewrite !inE /edge /graph /star /after.
  by case: i j => [i|] [j|]; rewrite ?andbF.
Qed.

(* Why the programme needs 0 <= mu: without it a table of isolated records is worth all of them (k = 2): E <= I is false. *)
Lemma cap_ge0_is_needed (L0 : 0 <= L) : exists2 a : allocation R I,
  [/\ forall j, 0 <= got a j <= 1,
      forall i j, edge setT (graph star after) i j -> 0 <= flow a i j <= cap a j,
      forall j, got a j + (2%:R - 1) * cap a j <= \sum_(i | edge setT (graph star after) i j) flow a i j
    & forall i, \sum_(j | edge setT (graph star after) i j) flow a i j <= L]
  & value a = m.+2%:R /\ inliers 2 setT (graph star after) = 0%N.
Proof.
exists (Allocation (fun _ => 1) (fun _ => -1) (fun _ _ => 0)); split=> //=.
- by move=> j; rewrite ler01 lexx.
- by move=> [i|] [j|]; rewrite /edge /graph /star /after /= ?andbF.
- by move=> j; rewrite big1 // mulrN1 opprB addrA -mulr2n subrr.
- by move=> i; rewrite big1.
- by rewrite /value /worth /= sumr_const cardsT card_option card_ord.
- rewrite /inliers eq_card0 // => j; rewrite !inE /degree eq_card0 // => i.
  by rewrite !inE /edge /graph /star /after; case: i j => [i|] [j|]; rewrite ?andbF.
Qed.
End Sharp.
