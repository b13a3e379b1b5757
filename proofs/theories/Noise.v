(* mechanisms.md: (L) discrete Laplace, (K1) cube noise, the exponential mechanism, (J1) choices together.
   Algebra only: p stands for e^(-1/b), A for e^(eps/2). Real.v puts expR in their place. No axioms. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Geometric.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).

(* anything that falls like p^(a size that moves by at most D) *)
Lemma geometric_ratio (s s' D : nat) : (s' <= s + D)%N -> p ^+ s <= p^-1 ^+ D * p ^+ s'.
Proof.
move=> le; rewrite exprVn ler_pdivl_mull ?exprn_gt0 // -exprD addnC.
by rewrite ler_wiexpn2l // ltW.
Qed.

(* Discrete Laplace noise with p = e^(-1/b). *)
Definition laplace (z : int) : R := (1 - p) / (1 + p) * p ^+ `|z|%N.

(* Chances are not negative. *)
Lemma laplace_ge0 z : 0 <= laplace z.
Proof. by rewrite mulr_ge0 ?exprn_ge0 ?divr_ge0 ?subr_ge0 ?addr_ge0 ?ler01 ?ltW. Qed.

(* (L) without exponentials: values at most D apart have chances within p^-D. *)
Theorem laplace_ratio (f f' y : int) (D : nat) : (`|f - f'| <= D)%N ->
  laplace (y - f) <= p^-1 ^+ D * laplace (y - f').
Proof.
move=> le; rewrite /laplace mulrCA ler_wpmul2l //; last first.
  apply: geometric_ratio; rewrite -(leq_add2l `|y - f|%N) in le.
  exact: leq_trans (leq_add_dist y f f') le.
by rewrite divr_ge0 ?subr_ge0 ?addr_ge0 ?ler01 ?ltW.
Qed.

(* its mass on -n ... n, which tends to 1 *)
Theorem laplace_mass n : laplace 0 + \sum_(i < n) (laplace i.+1 + laplace (- i.+1%:Z)) = 1 - 2%:R * p ^+ n.+1 / (1 + p).
Proof.
have p1 : 1 + p != 0 by rewrite lt0r_neq0 // addr_gt0 // ltr01.
have W : (1 - p) * (1 + \sum_(i < n) (p ^+ i.+1 *+ 2)) = 1 + p - p ^+ n.+1 *+ 2.
  elim: n => [|n IH].
    by rewrite big_ord0 addr0 mulr1 expr1 mulr2n opprD addrA addrK.
  rewrite big_ord_recr /= addrA mulrDr IH mulrBl mul1r mulrnAr -exprS.
  by rewrite addrA subrK.
rewrite mulr_natl.
have -> : laplace 0 + \sum_(i < n) (laplace i.+1 + laplace (- i.+1%:Z)) =
          (1 - p) * (1 + \sum_(i < n) (p ^+ i.+1 *+ 2)) / (1 + p).
  rewrite mulrAC mulrDr mulr1 {1}/laplace expr0 mulr1 mulr_sumr; congr (_ + _).
  by apply: eq_bigr => i _; rewrite /laplace abszN absz_nat -mulrDr mulr2n.
by rewrite W mulrBl divff.
Qed.
End Geometric.

Section Exponential.
Variables (R : realFieldType) (C : finType) (A : R) (w w' : C -> R).
Hypotheses (w_gt0 : forall c, 0 < w c) (w'_gt0 : forall c, 0 < w' c).
Hypotheses (up : forall c, w c <= A * w' c) (down : forall c, w' c <= A * w c).

(* Weights divided by their sum. *)
Definition normal (w : C -> R) c := w c / \sum_d w d.

(* Weights within a factor A give chances within A^2: once for the weight, once for the sum. *)
Theorem exponential_ratio c : normal w c <= A ^+ 2 * normal w' c.
Proof.
have W0 : 0 < \sum_d w d by rewrite (bigD1 c) //= ltr_spaddl // sumr_ge0 // => d _; rewrite ltW.
have W0' : 0 < \sum_d w' d by rewrite (bigD1 c) //= ltr_spaddl // sumr_ge0 // => d _; rewrite ltW.
rewrite /normal ler_pdivr_mulr // expr2 -!mulrA [_^-1 * _]mulrC.
have A0 : 0 <= A by rewrite -(pmulr_lge0 _ (w'_gt0 c)) (le_trans _ (up c)) // ltW.
apply: (le_trans (up c)); rewrite ler_wpmul2l //.
rewrite mulrCA ler_pmulr //.
rewrite mulrA ler_pdivl_mulr // mul1r mulr_sumr.
by apply: ler_sum.
Qed.

(* They are a probability law. *)
Lemma exponential_law : (exists c : C, true) -> \sum_c normal w c = 1.
Proof.
case=> c _; have W0 : 0 < \sum_d w d by rewrite (bigD1 c) //= ltr_spaddl // sumr_ge0 // => d _; rewrite ltW.
by rewrite -mulr_suml divff // gt_eqF.
Qed.
End Exponential.

(* (J1): a maximum of errors that move by at most D moves by at most D. *)
Section Together.
Variables (J C : finType) (err err' : J -> C -> nat) (D : nat).
Hypothesis moves : forall j c, (err j c <= err' j c + D)%N.
(* The largest error of a tuple of candidates. *)
Definition worst (e : J -> C -> nat) (c : {ffun J -> C}) := (\max_j e j (c j))%N.
(* The step of (J1): a maximum moves no further than its terms. *)
Theorem worst_moves c : (worst err c <= worst err' c + D)%N.
Proof.
apply/bigmax_leqP => j _; apply: leq_trans (moves _ _) _; rewrite leq_add2r.
exact: (leq_bigmax j).
Qed.
End Together.

(* (K1): the largest of the numbers of a vector *)
Section Cube.
Variables (R : realFieldType) (p : R) (J : finType).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
(* The largest number of a vector. *)
Definition size_of (z : J -> int) := (\max_j `|z j|)%N.
(* (K1) without the normaliser: weights of cube noise. *)
Theorem cube_ratio (f f' y : J -> int) (D : nat) : (forall j, `|f j - f' j| <= D)%N ->
  p ^+ size_of (fun j => y j - f j) <= p^-1 ^+ D * p ^+ size_of (fun j => y j - f' j).
Proof.
move=> le; apply: geometric_ratio => //; apply/bigmax_leqP => j _.
apply: (@leq_trans (`|y j - f j| + D)%N); last first.
  by rewrite leq_add2r; apply: (leq_bigmax j).
apply: (@leq_trans (`|y j - f j| + `|f j - f' j|)%N); last by rewrite leq_add2l.
exact: leq_add_dist.
Qed.
End Cube.

(* Several numbers, each with noise of its own: (L) for the counts of groups, of cells and of flags. *)
Section Vector.
Variables (R : realFieldType) (p : R) (J : finType).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
(* Independent discrete Laplace noise on each number. *)
Definition laplace_vector (z : J -> int) : R := \prod_j laplace p (z j).

(* Chances are not negative. *)
Lemma laplace_vector_ge0 z : 0 <= laplace_vector z.
Proof. by apply: prodr_ge0 => j _; apply: laplace_ge0. Qed.

(* Numbers whose changes add up to at most D are hidden as one number that changes by D: the log-ratios add up. *)
Theorem laplace_vector_ratio (f f' y : J -> int) (D : nat) : (\sum_j `|f j - f' j| <= D)%N ->
  laplace_vector (fun j => y j - f j) <= p^-1 ^+ D * laplace_vector (fun j => y j - f' j).
Proof.
move=> le; apply: (@le_trans _ _ (\prod_j (p^-1 ^+ `|f j - f' j|%N * laplace p (y j - f' j)))).
  by apply: ler_prod => j _; rewrite laplace_ge0 //=; apply: laplace_ratio.
rewrite big_split /= prodrXr; apply: ler_wpmul2r; first exact: laplace_vector_ge0.
by apply: ler_weexpn2l => //; rewrite invr_ge1 ?unitfE ?gt_eqF // ltW.
Qed.
End Vector.
