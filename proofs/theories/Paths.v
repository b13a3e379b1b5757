(* (U1) of ledger for rho: a path of k steps of rho-zCDP is k^2 rho-zCDP, by Hölder's inequality for sums. Answers of any kind. Axioms: the
   three of mathcomp-analysis. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.classical Require Import boolp classical_sets.
From mathcomp.analysis Require Import reals ereal constructive_ereal topology normedtype sequences esum exp.
From wallflower Require Import Sums Either Real.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* The exponential is convex: what Hölder's inequality needs. *)
Lemma expR_convex (R : realType) (l m u v : R) : 0 <= l -> 0 <= m -> l + m = 1 -> expR (l * u + m * v) <= l * expR u + m * expR v.
Proof.
move=> l0 m0 lm.
have tangent (y w : R) : expR y * (1 + (w - y)) <= expR w.
  by rewrite -[X in _ <= expR X](subrK y) expRD mulrC ler_pmul2r ?expR_gt0 // expR_ge1D.
move zE : (l * u + m * v) => z.
apply: le_trans (ler_add (ler_wpmul2l l0 (tangent z u)) (ler_wpmul2l m0 (tangent z v))).
rewrite ![_ * (expR z * _)]mulrCA -mulrDr -[leLHS]mulr1 ler_pmul2l ?expR_gt0 //.
rewrite !mulrDr !mulr1 !mulrN addrACA lm -{1}[1]addr0 ler_add2l addrACA zE -opprD -mulrDl lm mul1r.
by rewrite subrr.
Qed.

Section Step.
Variables (R : realType) (a j : R).
Hypotheses (a_gt1 : 1 < a) (j_gt0 : 0 < j).

(* Orders and weights of Hölder's inequality; the weights add up to 1. *)
Definition base := a * (j + 1) - 1.
(* The order at which the first j steps are used. *)
Definition order1 := base / j.
(* The order at which the last step is used. *)
Definition order2 := base + 1.
(* The weight of the first j steps. *)
Definition weight1 := a * j / base.
(* The weight of the last step. *)
Definition weight2 := (a - 1) / base.

(* a is positive. *)
Lemma a_gt0 : 0 < a.
Proof. exact: lt_trans a_gt1. Qed.
(* j stands between 0 and the base. *)
Lemma base_gt : j < base.
Proof.
rewrite /base mulrDr mulr1 -addrA -[X in X < _]addr0; apply: ltr_add; last by rewrite subr_gt0.
by rewrite ltr_pmull.
Qed.
(* The base is positive. *)
Lemma base_gt0 : 0 < base.
Proof. exact: lt_trans base_gt. Qed.
(* Both weights are positive. *)
Lemma weights_ge0 : 0 <= weight1 /\ 0 <= weight2.
Proof.
split; rewrite divr_ge0 ?(ltW base_gt0) ?subr_ge0 ?(ltW a_gt1) // mulr_ge0 ?(ltW j_gt0) //.
exact/ltW/a_gt0.
Qed.
(* They add up to 1. *)
Lemma weights_sum : weight1 + weight2 = 1.
Proof.
have eq : a * j + (a - 1) = base by rewrite /base mulrDr mulr1 addrA.
by rewrite /weight1 /weight2 -mulrDl eq divff // gt_eqF // base_gt0.
Qed.
(* The first order is above 1. *)
Lemma order1_gt1 : 1 < order1.
Proof. by rewrite /order1 ltr_pdivl_mulr // mul1r base_gt. Qed.
(* So is the second. *)
Lemma order2_gt1 : 1 < order2.
Proof. by rewrite /order2 ltr_addr base_gt0. Qed.
(* Weight times order, for the first table. *)
Lemma weight1_order1 : weight1 * order1 = a.
Proof.
have b0 : base != 0 by rewrite gt_eqF ?base_gt0.
by rewrite /weight1 /order1 mulrA divfK // mulfK // gt_eqF.
Qed.
(* The same for the last table. *)
Lemma weight2_order2 : weight2 * (1 - order2) = 1 - a.
Proof.
have b0 : base != 0 by rewrite gt_eqF ?base_gt0.
by rewrite /weight2 /order2 opprD addrCA subrr addr0 mulrN divfK // opprB.
Qed.
(* The table between the steps drops out. *)
Lemma weights_between : weight1 * (1 - order1) + weight2 * order2 = 0.
Proof.
have e1 : weight1 * (1 - order1) = weight1 - a by rewrite mulrBr mulr1 weight1_order1.
have e2 : weight2 * order2 = weight2 - (1 - a) by rewrite -weight2_order2 mulrBr mulr1 opprB addrC subrK.
by rewrite e1 e2 addrACA weights_sum -opprD [a + _]addrC subrK subrr.
Qed.

(* Hölder's inequality, answer by answer: x, y, z are the chances of one answer for the first table, the one between and the last. *)
Lemma moment_step (K1 K2 x y z : R) : below x y -> below y z ->
  mom a x z <= expR (weight1 * K1 + weight2 * K2) *
    (weight1 * expR (- K1) * mom order1 x y + weight2 * expR (- K2) * mom order2 y z).
Proof.
move=> bxy byz; have [l0 m0] := weights_ge0; have [x0 y0 xy] := bxy; have [_ z0 yz] := byz.
rewrite {1}/mom; case: (eqVneq x 0) => [_|xn].
  have e0 (w : R) : 0 <= expR w := ltW (expR_gt0 w).
  by apply: mulr_ge0 => //; apply: addr_ge0; apply: mulr_ge0; rewrite ?mom_ge0 //; apply: mulr_ge0.
have yn : y != 0 by apply: contraNneq xn => /xy->.
rewrite /mom (negbTE xn) (negbTE yn) -[weight1 * _ * _]mulrA -[weight2 * _ * _]mulrA -!expRD.
set X := ln x; set Y := ln y; set Z := ln z.
have -> : a * X + (1 - a) * Z = (weight1 * K1 + weight2 * K2) +
    (weight1 * (- K1 + (order1 * X + (1 - order1) * Y)) + weight2 * (- K2 + (order2 * Y + (1 - order2) * Z))).
  have -> : weight1 * (- K1 + (order1 * X + (1 - order1) * Y)) + weight2 * (- K2 + (order2 * Y + (1 - order2) * Z)) =
      - (weight1 * K1 + weight2 * K2) + (weight1 * order1 * X + (weight1 * (1 - order1) + weight2 * order2) * Y +
      weight2 * (1 - order2) * Z).
    move: weight1 weight2 order1 order2 (1 - order1) (1 - order2) => w1 w2 p1 p2 o1 o2.
    rewrite !mulrDr !mulrN mulrDl !mulrA opprD addrACA; congr (_ + _).
    by rewrite -!addrA.
  by rewrite weights_between mul0r addr0 weight1_order1 weight2_order2 addrA subrr add0r.
by rewrite [leLHS]expRD ler_pmul2l ?expR_gt0 // expR_convex // weights_sum.
Qed.
End Step.

Section Paths.
Variables (R : realType) (O : choiceType).
Implicit Types p q r : O -> R.
(* rho-zCDP, one way: the moment of every order above 1. *)
Definition concentrated (rho : R) p q :=
  (forall x, below (p x) (q x)) /\
  forall a, 1 < a -> adds_up (fun x => mom a (p x) (q x)) /\ total (fun x => mom a (p x) (q x)) <= expR (a * (a - 1) * rho).

(* One more step after j of them. *)
Lemma concentrated_step (j rho : R) p q r : 0 < j -> concentrated (j ^+ 2 * rho) p q -> concentrated rho q r ->
  concentrated ((j + 1) ^+ 2 * rho) p r.
Proof.
move=> j0 [bpq mpq] [bqr mqr]; split=> [x|a a1].
  by have [p0 _ pq] := bpq x; have [_ r0 qr] := bqr x; split=> // /qr/pq.
have [ap tp] := mpq _ (order1_gt1 a1 j0); have [aq tq] := mqr _ (order2_gt1 a1 j0).
have [l0 m0] := weights_ge0 a1 j0.
pose K1 := order1 a j * (order1 a j - 1) * (j ^+ 2 * rho); pose K2 := order2 a j * (order2 a j - 1) * rho.
have e0 (z : R) : 0 <= expR z := ltW (expR_gt0 z).
have a1p := adds_upZ (mulr_ge0 l0 (e0 (- K1))) ap; have a2p := adds_upZ (mulr_ge0 m0 (e0 (- K2))) aq.
have as_ := adds_upD a1p a2p; have az := adds_upZ (e0 (weight1 a j * K1 + weight2 a j * K2)) as_.
have le x : 0 <= mom a (p x) (r x) <= expR (weight1 a j * K1 + weight2 a j * K2) *
    (weight1 a j * expR (- K1) * mom (order1 a j) (p x) (q x) + weight2 a j * expR (- K2) * mom (order2 a j) (q x) (r x)).
  by rewrite mom_ge0 (moment_step a1 j0).
split; first exact: adds_up_le le az.
have c1 := mulr_ge0 l0 (e0 (- K1)); have c2 := mulr_ge0 m0 (e0 (- K2)).
apply: (le_trans (total_le le az)); rewrite totalZ // totalD // (totalZ c1 ap) (totalZ c2 aq).
have one (w K t : R) : 0 <= w -> t <= expR K -> w * expR (- K) * t <= w.
  by move=> w0 tK; rewrite -mulrA ler_pimulr // expRN ler_pdivr_mull ?expR_gt0 // mulr1.
have sum1 := ler_add (one _ _ _ l0 tp) (one _ _ _ m0 tq); rewrite (weights_sum a1 j0) in sum1.
apply: (le_trans (ler_wpmul2l (e0 _) sum1)); rewrite mulr1 le_eqVlt; apply/orP; left; apply/eqP; congr expR.
have jn : j != 0 by rewrite gt_eqF.
have assoc (w o x : R) : w * (o * (o - 1) * x) = (w * o) * (o - 1) * x by rewrite -!mulrA.
rewrite /K1 /K2 !assoc (weight1_order1 a1 j0).
have -> : order1 a j - 1 = (a - 1) * (j + 1) / j.
  have -> : (a - 1) * (j + 1) = base a j - j by rewrite mulrBl mul1r opprD addrA addrAC.
  by rewrite mulrBl divff.
have -> : weight2 a j * order2 a j * (order2 a j - 1) = (a - 1) * (a * (j + 1)).
  rewrite [in X in _ * X]/order2 addrK mulrAC /weight2 divfK ?gt_eqF ?base_gt0 //.
  by rewrite /order2 subrK.
have -> : a * ((a - 1) * (j + 1) / j) * (j ^+ 2 * rho) = a * (a - 1) * (j + 1) * rho * j.
  by rewrite expr2 -!mulrA mulKf // [rho * j]mulrC.
have -> : (a - 1) * (a * (j + 1)) * rho = a * (a - 1) * (j + 1) * rho by rewrite mulrCA mulrA.
by rewrite expr2 -{2}[a * (a - 1) * (j + 1) * rho]mulr1 -mulrDr -!mulrA [rho * (j + 1)]mulrC.
Qed.

(* (U1) for rho: a path of k steps. *)
Theorem U1_concentrated (rho : R) (path : nat -> O -> R) k : (forall n, (n < k)%N -> concentrated rho (path n) (path n.+1)) ->
  (0 < k)%N -> concentrated ((k ^ 2)%:R * rho) (path 0%N) (path k).
Proof.
case: k => // k; elim: k => [|k IH] steps _; first by rewrite mul1r; apply: steps.
have before : concentrated (k.+1%:R ^+ 2 * rho) (path 0%N) (path k.+1).
  by rewrite -natrX; apply: IH => // n nk; apply: steps; apply: ltn_trans nk _.
have := concentrated_step (ltr0Sn R k) before (steps k.+1 (ltnSn _)).
by rewrite natrX -[k.+2]addn1 natrD.
Qed.
End Paths.

(* One answer with two parts, the second of which may depend on what the first one said: their losses add up. Parts of any kind, such as the
   whole numbers that noisy counts are. *)
Section Parts.
Variables (R : realType) (O1 O2 : choiceType) (e1 e2 : R).
Variables (p p' : O1 -> R) (r r' : O1 -> O2 -> R).
Hypotheses (p_ge0 : forall x, 0 <= p x) (p_ge0' : forall x, 0 <= p' x).
Hypotheses (r_ge0 : forall x y, 0 <= r x y) (r_ge0' : forall x y, 0 <= r' x y).
Hypothesis first_part : forall x, p x <= expR e1 * p' x.
Hypothesis second_part : forall x y, r x y <= expR e2 * r' x y.
(* The law of both parts. *)
Definition both (p : O1 -> R) (r : O1 -> O2 -> R) (a : O1 * O2) := p a.1 * r a.1 a.2.

(* Answer by answer. *)
Lemma parts_ratio a : both p r a <= expR (e1 + e2) * both p' r' a.
Proof. by rewrite /both expRD mulrACA; apply: ler_pmul. Qed.

(* For every set of answers. *)
Theorem parts_sets (S : set (O1 * O2)) :
  (\esum_(a in S) (both p r a)%:E <= (expR (e1 + e2))%:E * \esum_(a in S) (both p' r' a)%:E)%E.
Proof.
apply: Real.esum_within => [a|a|]; [exact: mulr_ge0 | exact: parts_ratio | exact/ltW/expR_gt0].
Qed.
End Parts.
