(* (F1) of ledger: a filter that accepts while the sums stay within (eps, delta). Adaptive analysts, finite answers. No axioms:
   expo is any function with the three properties used of the exponential; Real.v puts expR in its place. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Filter.
Variables (R : realFieldType) (expo : R -> R) (O : finType).
(* answers that are covered: those that do not name the record in question; predT where nothing names records *)
Variable good : pred O.
Hypotheses (expo_gt0 : forall x, 0 < expo x) (expoD : forall x y, expo (x + y) = expo x * expo y)
  (expo_ge1 : forall x, 0 <= x -> 1 <= expo x).

(* What analysts do, coins and all: ask a question with a price, for which the two tables have laws p and q of the answer, and go
   on as they like with the answer, or with the refusal (None). *)
Inductive analyst := Done | Ask of R & R & (O -> R) & (O -> R) & (option O -> analyst).

(* A probability law on the answers. *)
Definition is_law (p : O -> R) := (forall a, 0 <= p a) /\ \sum_a p a = 1.
(* The claim of a question: (e, d)-differential privacy for all sets of covered answers, one way. Both ways is the theorem twice. *)
Definition within e d (p q : O -> R) := forall E : pred O, (forall a, E a -> good a) ->
  \sum_(a | E a) p a <= expo e * (\sum_(a | E a) q a) + d.

(* every question keeps what its claim states *)
Fixpoint honest (t : analyst) : Prop :=
  if t is Ask e d p q next then
    [/\ 0 <= e /\ 0 <= d, is_law p, is_law q, within e d p q & forall r, honest (next r)]
  else True.

(* What is seen: answers, and refusals (None). *)
Definition transcript := seq (option O).
(* A transcript that names nobody whom the theorem is about. *)
Definition covered (w : transcript) := all (fun r => if r is Some a then good a else true) w.

(* the chance that the transcript is in S, with (e, d) left, on one side or the other *)
Fixpoint chance (side : bool) (eps del : R) (t : analyst) (S : transcript -> bool) : R :=
  if t is Ask e d p q next then
    if (e <= eps) && (d <= del) then
      \sum_a (if side then p a else q a) * chance side (eps - e) (del - d) (next (Some a)) (fun w => S (Some a :: w))
    else chance side eps del (next None) (fun w => S (None :: w))
  else (S [::])%:R.

(* Chances are between 0 and 1. *)
Lemma chance_range side eps del t S : honest t -> 0 <= chance side eps del t S <= 1.
Proof.
elim: t eps del S => [|e d p q next IH] eps del S /=; first by case: (S _); rewrite ?ler01 ?lexx.
case=> _ [p0 p1] [q0 q1] _ hn; case: ifP => _; last exact: IH.
apply/andP; split.
  apply: sumr_ge0 => a _; apply: mulr_ge0; first by case: (side).
  by have /andP[] := IH (Some a) (eps - e) (del - d) (fun w => S (Some a :: w)) (hn _).
apply: (@le_trans _ _ (\sum_a (if side then p a else q a))); last by case: (side); rewrite ?p1 ?q1.
apply: ler_sum => a _; apply: ler_pimulr; first by case: (side).
by have /andP[] := IH (Some a) (eps - e) (del - d) (fun w => S (Some a :: w)) (hn _).
Qed.

(* Some transcript happens: the chances of all of them add up to 1, so `chance` is a probability. *)
Lemma chance_all side eps del t : honest t -> chance side eps del t (fun _ => true) = 1.
Proof.
elim: t eps del => [|e d p q next IH] eps del //= [_ [p0 p1] [q0 q1] _ hn]; case: ifP => _; last exact: IH.
by under eq_bigr do rewrite IH // mulr1; case: (side).
Qed.

(* An empty set of transcripts has chance 0. *)
Lemma chance_none side eps del t S : (forall w, S w = false) -> chance side eps del t S = 0.
Proof.
elim: t eps del S => [|e d p q next IH] eps del S S0 /=; first by rewrite S0.
by case: ifP => _; rewrite ?IH // big1 // => a _; rewrite IH ?mulr0.
Qed.

(* from sets of answers to functions with values in [0, 1] *)
Lemma within_fun e d p q g : within e d p q -> (forall a, 0 <= g a <= 1) -> (forall a, ~~ good a -> g a = 0) ->
  \sum_a p a * g a <= expo e * (\sum_a q a * g a) + d.
Proof.
move=> w g01 gbad; have sub a : good a && (expo e * q a <= p a) -> good a by case/andP.
have := w _ sub.
rewrite -!ler_subl_addl !mulr_sumr -!sumrB; apply: le_trans.
rewrite [leRHS]big_mkcond; apply: ler_sum => a _; rewrite mulrA -mulrBl; have /andP[g0 g1] := g01 a.
case: (boolP (good a)) => [_|/gbad->] /=; last by rewrite mulr0.
case: ifP => [le|/negbT lt]; first by apply: ler_pimulr; rewrite ?subr_ge0.
by apply: mulr_le0_ge0 => //; rewrite subr_le0 ltW // ltNge.
Qed.

(* (F1): whatever the analysts do with answers and refusals, all answers together are (eps, del)-differentially private. *)
Theorem F1_sum eps del t (S : transcript -> bool) : 0 <= eps -> 0 <= del -> honest t -> (forall w, S w -> covered w) ->
  chance true eps del t S <= expo eps * chance false eps del t S + del.
Proof.
elim: t eps del S => [|e d p q next IH] eps del S e0 d0 /=.
  by move=> _ _; apply: ler_paddr => //; apply: ler_pemull; rewrite ?ler0n ?expo_ge1.
case=> -[ee0 dd0] lp lq w hn cov; case: ifP => [/andP[ee dd]|_]; last by apply: IH => // w' /cov.
pose Q a := chance false (eps - e) (del - d) (next (Some a)) (fun w => S (Some a :: w)).
pose P a := chance true (eps - e) (del - d) (next (Some a)) (fun w => S (Some a :: w)).
have Qr a : 0 <= Q a <= 1 by apply: chance_range.
have Pr a : 0 <= P a <= 1 by apply: chance_range.
have PQ a : P a <= expo (eps - e) * Q a + (del - d) by apply: IH; rewrite ?subr_ge0 // => w' /cov /andP[].
pose g a := Num.min 1 (expo (eps - e) * Q a).
have gr a : 0 <= g a <= 1.
  have /andP[q0 _] := Qr a.
  by rewrite /g le_minr ler01 /= le_minl lexx andbT mulr_ge0 // ltW.
have gbad a : ~~ good a -> g a = 0.
  move=> /negbTE bad; rewrite /g /Q chance_none ?mulr0; last by move=> w'; apply/negP => /cov /=; rewrite bad.
  by apply/min_idPr; rewrite ler01.
have Pg a : P a <= g a + (del - d).
  have /andP[_ p1] := Pr a; rewrite /g addr_minl le_minr PQ andbT.
  by apply: (le_trans p1); rewrite ler_addl subr_ge0.
apply: (@le_trans _ _ ((\sum_a p a * g a) + (del - d))).
  case: lp => p0 p1; rewrite -[X in _ <= _ + X]mul1r -p1 mulr_suml -big_split /=.
  by apply: ler_sum => a _; rewrite -mulrDr; apply: ler_wpmul2l; [exact: p0 | exact: Pg].
have := within_fun w gr gbad; rewrite -(ler_add2r (del - d)) => h; apply: (le_trans h).
have ex : expo eps = expo e * expo (eps - e) by rewrite -expoD addrC subrK.
rewrite -addrA [d + _]addrC subrK ler_add2r ex -mulrA.
apply: ler_wpmul2l; first exact: ltW.
rewrite mulr_sumr; apply: ler_sum => a _; rewrite mulrCA; apply: ler_wpmul2l; first by case: lq.
by rewrite /g le_minl lexx orbT.
Qed.

(* delta = 0: every single transcript *)
Corollary F1_transcript eps t w : 0 <= eps -> honest t -> covered w ->
  chance true eps 0 t (eq_op w) <= expo eps * chance false eps 0 t (eq_op w).
Proof.
move=> e0 ht cw; have cov w' : w == w' -> covered w' by move/eqP <-.
by have := F1_sum e0 (lexx 0) ht cov; rewrite addr0.
Qed.

(* what the mechanisms prove, answer by answer, is a claim *)
Lemma pointwise_within e p q : (forall a, good a -> p a <= expo e * q a) -> within e 0 p q.
Proof. by move=> le E cov; rewrite addr0 mulr_sumr; apply: ler_sum => a /cov; apply: le. Qed.

(* (U1): a path of k steps *)
Lemma U1 (T : Type) (P : nat -> T -> R) e d (S : T) k : (forall i S, (i < k)%N -> P i S <= expo e * P i.+1 S + d) ->
  P 0%N S <= expo (e *+ k) * P k S + d * (\sum_(j < k) expo (e *+ j)).
Proof.
have expo0 : expo 0 = 1.
  by apply: (mulfI (lt0r_neq0 (expo_gt0 0))); rewrite -expoD addr0 mulr1.
elim: k => [|k IH] step; first by rewrite big_ord0 mulr0n expo0 mul1r mulr0 addr0.
apply: (le_trans (IH _)) => [i S' ik|]; first by apply: step; apply: ltnW.
rewrite big_ord_recr /= mulrDr [X in _ <= _ + X]addrC addrA ler_add2r mulrSr expoD.
rewrite -mulrA [d * _]mulrC -mulrDr ler_pmul2l //.
exact: step.
Qed.
End Filter.
