(* (P) of scale: a secret pairing. Joint convexity, and its use: an evenly drawn secret order makes a mechanism that is private
   for records that keep their places private for tables in any two orders. No axioms. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Convexity.
Variables (R : realFieldType) (C C' : finType) (mu : C -> R) (mu' : C' -> R) (K : R).

(* Coins c, c' of two laws, weights mu, mu'; a bijection that carries weights to weights, and laws within K. *)
Theorem joint_convexity (p : C -> R) (p' : C' -> R) (f : C -> C') :
  bijective f -> (forall c, 0 <= mu c) -> (forall c, mu' (f c) = mu c) -> (forall c, p c <= K * p' (f c)) ->
  \sum_c mu c * p c <= K * \sum_c' mu' c' * p' c'.
Proof.
move=> [g fg gf] mu0 same le; rewrite (reindex f) /=; last by exists g => c _.
rewrite mulr_sumr; apply: ler_sum => c _; rewrite same mulrCA.
exact: ler_wpmul2l.
Qed.
End Convexity.

Section SecretOrder.
Variables (R : realFieldType) (I : finType) (T O : Type) (K : R).
Notation table := (I -> T).
(* One record replaced at its place. *)
Definition in_place v (X X' : table) := forall j, j != v -> X' j = X j.
(* one record replaced, and all of them put into another order *)
Definition in_any_order (X X' : table) := exists (s : {perm I}) v, forall j, j != v -> X' (s j) = X j.

Variable M : table -> O -> R.
Hypothesis M_private : forall v X X' o, in_place v X X' -> M X o <= K * M X' o.

(* the law of the coin may be any that does not change when places are renamed *)
Variable mu : {perm I} -> R.
Hypotheses (mu_ge0 : forall c, 0 <= mu c) (mu_even : forall s c : {perm I}, mu (c * s)%g = mu c).
(* The law of the answer when the order is drawn with the weights mu and not released. *)
Definition secret X o := \sum_(c : {perm I}) mu c * M (fun j => X (c j)) o.

(* (P) of scale: private for records that keep their places becomes private for any two orders. The coin must be exactly even. *)
Theorem secret_order X X' o : in_any_order X X' -> secret X o <= K * secret X' o.
Proof.
case=> s [v same]; apply: (joint_convexity (f := fun c : {perm I} => (c * s)%g)) => //.
- by exists (fun c => (c * s^-1)%g) => c; rewrite ?mulgK ?mulgKV.
- move=> c; apply: (M_private (v := (c^-1)%g v)) => j jv /=; rewrite permM same //.
  by apply: contraNneq jv => <-; rewrite permK.
Qed.
End SecretOrder.

(* The same for anything that is drawn by places and can be renamed (a matching, a set of pairs, words for each place). *)
Section SecretCoin.
Variables (R : realFieldType) (I C : finType) (T O : Type) (K : R).
Notation table := (I -> T).
Variable rename : {perm I} -> C -> C.
Hypothesis rename_inv : forall s, cancel (rename s) (rename s^-1%g).
Variable M : C -> table -> O -> R. (* the law of the answer, given the coin *)
Hypothesis M_places : forall s c X o, M (rename s c) X o = M c (fun j => X (s j)) o.
Hypothesis M_private : forall c v X X' o, in_place v X X' -> M c X o <= K * M c X' o.
Variable mu : C -> R.
Hypotheses (mu_ge0 : forall c, 0 <= mu c) (mu_even : forall s c, mu (rename s c) = mu c).

(* The same statement for any coin that can be renamed. *)
Theorem secret_coin X X' o : in_any_order X X' -> \sum_c mu c * M c X o <= K * \sum_c mu c * M c X' o.
Proof.
case=> s [v same]; apply: (joint_convexity (f := rename s)) => //.
- by exists (rename s^-1%g) => //; move=> c; rewrite -{1}[s]invgK rename_inv.
- by move=> c; rewrite M_places; apply: (@M_private c v).
Qed.
End SecretCoin.
