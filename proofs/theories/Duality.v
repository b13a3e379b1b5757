(* (C1) and (C2) of count: what certifies the value of the programme. A feasible allocation is a lower bound of E, and prices are an
   upper one, by weak duality; both are checked by sums and comparisons, whoever computed them. No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra.
From wallflower Require Import Extension.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Duality.
Variables (R : realFieldType) (I : finType) (k : nat) (L : R) (A : {set I}) (e : rel I).
Implicit Types (a : allocation R I) (p c : I -> R).
Notation edge := (edge A e).

(* c is a cost at which consumer j can be served: what all cheaper suppliers lack to it adds up to (k - 1) c at most. The largest such c
   is the minimum of proof.md over s >= k of the s lowest prices divided by s - k + 1; any smaller one is a valid bound too. *)
Definition affordable p j (c : R) :=
  (0 <= c) && (\sum_(i | edge i j) Num.max 0 (c - p i) <= (k%:R - 1) * c).

(* What the prices prove. *)
Definition dual_bound p c :=
  L * (\sum_(i in A) p i) + \sum_(j in A | (k <= degree A e j)%N) Num.max 0 (1 - c j).

(* A consumer pays at least c for each unit that it gets: the step of (C2) for one consumer. *)
Lemma pays_its_cost p (c : R) j a : (forall i, i \in A -> 0 <= p i) -> affordable p j c -> feasible k L A e a -> j \in A ->
  c * got a j <= \sum_(i | edge i j) p i * flow a i j.
Proof.
move=> p0 /andP[c0 cheap] fa jA.
have mu0 := cap_ge0 fa jA.
apply: (@le_trans _ _ (c * (\sum_(i | edge i j) flow a i j - (k%:R - 1) * cap a j))).
  by apply: ler_wpmul2l => //; rewrite ler_subr_addr; apply: (demand fa jA).
rewrite mulrBr ler_subl_addr mulr_sumr -ler_subl_addl -sumrB.
apply: (@le_trans _ _ (\sum_(i | edge i j) Num.max 0 (c - p i) * cap a j)).
  apply: ler_sum => i ij; have /andP[f0 fmu] := flow_range fa ij; rewrite -mulrBl.
  case: (lerP 0 (c - p i)) => [d0|/ltW d0]; first exact: ler_wpmul2l.
  by rewrite mul0r mulr_le0_ge0.
by rewrite -mulr_suml mulrA [c * _]mulrC; apply: ler_wpmul2r.
Qed.

(* (C2): weak duality. No allocation is worth more than what any prices prove. *)
Theorem C2_weak_duality p c a : (forall i, i \in A -> 0 <= p i) -> (forall j, j \in A -> affordable p j (c j)) ->
  feasible k L A e a -> worth A a <= dual_bound p c.
Proof.
move=> p0 cheap fa.
have one j : j \in A -> got a j <= (\sum_(i | edge i j) p i * flow a i j) +
    (if (k <= degree A e j)%N then Num.max 0 (1 - c j) else 0).
  move=> jA; have /andP[y0 y1] := got_range fa jA; have paid := pays_its_cost p0 (cheap _ jA) fa jA.
  case: ifP => [_|/negbT few]; last first.
    rewrite addr0 (outlier_gets_nothing fa jA) ?ltnNge //; apply: sumr_ge0 => i ij.
    have /andP[f0 _] := flow_range fa ij; rewrite mulr_ge0 // p0 //.
    by case/and4P: ij.
  rewrite -ler_subl_addr; apply: le_trans paid.
  rewrite ler_subl_addr -ler_subl_addl -{1}[got a j]mul1r -mulrBl le_maxr; apply/orP.
  case: (lerP 0 (1 - c j)) => [d0|/ltW d0]; last by left; rewrite mulr_le0_ge0.
  by right; rewrite ler_pimulr.
apply: (@le_trans _ _ (\sum_(j in A) (\sum_(i | edge i j) p i * flow a i j +
    (if (k <= degree A e j)%N then Num.max 0 (1 - c j) else 0)))).
  by apply: ler_sum.
rewrite big_split /= /dual_bound -big_mkcondr /= ler_add2r mulr_sumr.
rewrite (exchange_big_dep (mem A)) /=; last by move=> j i _ /and4P[].
apply: ler_sum => i iA; rewrite -mulr_sumr [leRHS]mulrC; apply: ler_wpmul2l; first exact: p0.
apply: le_trans (supply fa iA); rewrite le_eqVlt; apply/orP; left; apply/eqP; apply: eq_bigl => j.
by rewrite andb_idl // => /and4P[].
Qed.

(* The checker. It reads numbers that somebody computed and answers whether they are what they should be; nothing but sums, maxima and
   comparisons of rationals, which the program does on whole numbers. *)
Definition check_allocation a :=
  [&& [forall (j | j \in A), 0 <= got a j <= 1], [forall (j | j \in A), 0 <= cap a j],
      [forall i, [forall (j | edge i j), 0 <= flow a i j <= cap a j]],
      [forall (j | j \in A), got a j + (k%:R - 1) * cap a j <= \sum_(i | edge i j) flow a i j]
    & [forall (i | i \in A), \sum_(j | edge i j) flow a i j <= L]].
(* The checker of prices p and costs c. *)
Definition check_prices p c := [forall (i | i \in A), 0 <= p i] && [forall (j | j \in A), affordable p j (c j)].
(* The checker of a certificate: an allocation, prices and costs, whose bounds are at most gap apart. *)
Definition check_certificate a p c gap := [&& check_allocation a, check_prices p c & dual_bound p c - worth A a <= gap].

(* The checker accepts feasible allocations only. *)
Lemma check_allocationP a : reflect (feasible k L A e a) (check_allocation a).
Proof.
apply: (iffP and5P) => [[/forall_inP g /forall_inP c /forallP f /forall_inP d /forall_inP s]|[g c f d s]].
  by split=> // i j ij; move/forall_inP: (f i); apply.
split; try exact/forall_inP.
by apply/forallP => i; apply/forall_inP => j; apply: f.
Qed.

(* What an accepted certificate proves: every feasible allocation is worth at most what the certified one is, plus the gap. With E the
   largest worth, that is E - gap <= V <= E for V the worth of the certified one, all that (N) assumes of V. *)
Theorem certificate_sound a p c gap : check_certificate a p c gap ->
  feasible k L A e a /\ forall b, feasible k L A e b -> worth A b <= worth A a + gap.
Proof.
move=> /and3P[/check_allocationP fa /andP[/forall_inP p0 /forall_inP cheap] close]; split=> // b fb.
by apply: (le_trans (C2_weak_duality p0 cheap fb)); rewrite -ler_subl_addl.
Qed.

(* (C1): an allocation that serves every inlier fully is worth as much as any. *)
Theorem C1_all_served a : feasible k L A e a -> (forall j, j \in A -> (k <= degree A e j)%N -> got a j = 1) ->
  worth A a = (inliers k A e)%:R /\ forall b, feasible k L A e b -> worth A b <= worth A a.
Proof.
move=> fa full.
have w : worth A a = (inliers k A e)%:R.
  rewrite /worth (bigID (fun j => k <= degree A e j)%N) /= [X in _ + X]big1 ?addr0; last first.
    by move=> j /andP[jA]; rewrite -ltnNge; apply: (outlier_gets_nothing fa).
  rewrite /inliers -sum1_card natr_sum; apply: eq_big => [j|j /andP[jA kj]]; first by rewrite !inE.
  exact: full.
by split=> // b fb; rewrite w; exact: (worth_le_inliers fb).
Qed.
End Duality.
