(* (Y1) to (Y4) of ledger: people with several rows. Roll-up, joins and readings use no axioms; (Y2) uses those of mathcomp-analysis. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.classical Require Import boolp classical_sets.
From mathcomp.analysis Require Import reals sequences exp.
From wallflower Require Import Filter Real.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* A query sees a list of records and does not look at their order. A claim is any relation of two laws: one of eps, delta, rho or more. *)
Section People.
Variables (P : eqType) (C : Type) (T : eqType) (Law : Type) (M : seq T -> Law) (claim : Law -> Law -> Prop).
(* A row is an identifier and cells; a source is a list of rows. *)
Notation source := (seq (P * C)).
Implicit Types (s : source) (i j : P).
Hypothesis order_free : forall t t' : seq T, perm_eq t t' -> M t = M t'.

(* The rows of a person, in the order of the source. *)
Definition rows_of j s := [seq row.2 | row <- s & row.1 == j].
(* Everybody who has a row, in the order of last rows; the order does not matter. *)
Definition people s := undup [seq row.1 | row <- s].
(* Sources that differ in the rows of i, however many and wherever they stand. *)
Definition same_but i s s' := forall j, j != i -> rows_of j s = rows_of j s'.

(* Who has a row has rows. *)
Lemma people_rows j s : (j \in people s) = ~~ nilp (rows_of j s).
Proof.
rewrite mem_undup; elim: s => //= row s IH; rewrite inE /rows_of /= [row.1 == j]eq_sym.
by case: eqVneq.
Qed.

(* The others are the same people. *)
Lemma others_perm i s s' : same_but i s s' -> perm_eq (rem i (people s)) (rem i (people s')).
Proof.
move=> same; apply: uniq_perm; rewrite ?rem_uniq ?undup_uniq // => j.
rewrite !mem_rem_uniq ?undup_uniq // !inE; case: eqVneq => //= ji.
by rewrite !people_rows (same j ji).
Qed.

(* One record for each person: r j is made of what j contributes. *)
Definition records (r : P -> T) s := map r (people s).

(* The records of the others are the same, in some order. *)
Lemma others_records r r' i s s' : same_but i s s' -> (forall j, j != i -> r j = r' j) ->
  @perm_eq T (map r (rem i (people s))) (map r' (rem i (people s'))).
Proof.
move=> same rr; have -> : map r (rem i (people s)) = map r' (rem i (people s)).
  by apply/eq_in_map => j; rewrite mem_rem_uniq ?undup_uniq // inE => /andP[ji _]; apply: rr.
by apply: perm_map; apply: others_perm.
Qed.

(* The record of i may be put first. *)
Lemma records_first r i s : i \in people s -> M (records r s) = M (r i :: map r (rem i (people s))).
Proof. by move=> ip; apply: order_free; rewrite -map_cons perm_map // perm_to_rem. Qed.

(* Without rows of i there is no record to take out. *)
Lemma records_absent r i s : i \notin people s -> records r s = map r (rem i (people s)).
Proof. by move=> ip; rewrite /records rem_id. Qed.

(* A claim for a replaced record holds where what i contributes is replaced, whatever the records are made of. *)
Lemma replace_person r r' i s s' : (forall x y t, claim (M (x :: t)) (M (y :: t))) -> same_but i s s' ->
  (forall j, j != i -> r j = r' j) -> i \in people s -> i \in people s' -> claim (M (records r s)) (M (records r' s')).
Proof.
move=> hides same rr ip ip'; rewrite (records_first r ip) (records_first r' ip').
have pp := others_records same rr.
have -> : M (r' i :: map r' (rem i (people s'))) = M (r' i :: map r (rem i (people s))).
  by apply: order_free; rewrite perm_cons perm_sym.
exact: hides.
Qed.

(* A claim for an added record holds where a person is added; for a removed one, exchange the tables. *)
Lemma add_person r r' i s s' : (forall x t, claim (M (x :: t)) (M t)) -> same_but i s s' ->
  (forall j, j != i -> r j = r' j) -> i \in people s -> i \notin people s' -> claim (M (records r s)) (M (records r' s')).
Proof.
move=> hides same rr ip ip'; rewrite (records_first r ip) (records_absent r' ip').
by have <- := order_free (others_records same rr); apply: hides.
Qed.

Variable f : seq C -> T.
(* (Y1): the record of a person is a function of that person's rows, so every claim for a replaced record is one for a whole person. *)
Theorem Y1_replace i s s' : (forall x y t, claim (M (x :: t)) (M (y :: t))) -> same_but i s s' -> i \in people s -> i \in people s' ->
  claim (M (records (fun j => f (rows_of j s)) s)) (M (records (fun j => f (rows_of j s')) s')).
Proof. by move=> hides same; apply: replace_person => // j ji; rewrite (same j ji). Qed.

(* (Y1) where the unit is membership: to add a person is to add a record. *)
Theorem Y1_add i s s' : (forall x t, claim (M (x :: t)) (M t)) -> same_but i s s' -> i \in people s -> i \notin people s' ->
  claim (M (records (fun j => f (rows_of j s)) s)) (M (records (fun j => f (rows_of j s')) s')).
Proof. by move=> hides same; apply: add_person => // j ji; rewrite (same j ji). Qed.

Variables (C2 : Type) (g : T -> option C2 -> T).
(* The row of a person in the second table, if there is one. *)
Definition row_in (second : P -> option C2) j := second j.
(* (Y3) after a roll-up: the joined record is a function of what one person has in both tables, so the join costs nothing. *)
Theorem Y3_replace i s s' (second second' : P -> option C2) : (forall x y t, claim (M (x :: t)) (M (y :: t))) ->
  same_but i s s' -> (forall j, j != i -> row_in second j = row_in second' j) -> i \in people s -> i \in people s' ->
  claim (M (records (fun j => g (f (rows_of j s)) (row_in second j)) s))
        (M (records (fun j => g (f (rows_of j s')) (row_in second' j)) s')).
Proof. by move=> hides same same2; apply: replace_person => // j ji; rewrite (same j ji) same2. Qed.
End People.

(* Readings: an identifier, a time and a value. An entry is made of one person's readings at one time. *)
Section Readings.
Variables (P Time : eqType) (V E : Type) (f : seq V -> E).
Notation readings := (seq (P * Time * V)).
(* The readings of a person at a time, in the order of the source. *)
Definition readings_at (s : readings) (t : Time) (j : P) := [seq r.2 | r <- s & r.1 == (j, t)].
(* The entry of person j in the record of time t. *)
Definition entry (s : readings) t j := f (readings_at s t j).

(* (Y4): whatever happens to the readings of i, entries of others stay: one entry of each observation changes at most. *)
Theorem Y4_person (s s' : readings) i :
  (forall t j, j != i -> readings_at s t j = readings_at s' t j) -> forall t j, j != i -> entry s t j = entry s' t j.
Proof. by move=> same t j ji; rewrite /entry same. Qed.

(* (Y4) for readings at some times only: observations of other times stay as they are, so a window changes in a window. *)
Theorem Y4_times (s s' : readings) i (W : pred Time) :
  (forall t j, j != i \/ ~~ W t -> readings_at s t j = readings_at s' t j) -> forall t j, j != i \/ ~~ W t -> entry s t j = entry s' t j.
Proof. by move=> same t j out; rewrite /entry same. Qed.
End Readings.

(* (Y2): of each person at most c rows are kept, by an order that is drawn from public row numbers and kept secret. *)
Section Kept.
Variables (R : realType) (I D : finType) (T : Type) (S : Type).
Variables (c : nat) (e d : R) (w : D -> R) (kept : D -> {set I}).
(* The law of an answer: the draw, the rows, and a set of answers. *)
Variable M : D -> (I -> T) -> S -> R.
Hypotheses (e_ge0 : 0 <= e) (d_ge0 : 0 <= d) (w_ge0 : forall o, 0 <= w o) (M_ge0 : forall o X A, 0 <= M o X A).
(* A query sees the kept rows only. *)
Hypothesis sees_kept : forall o X X' A, (forall r, r \in kept o -> X r = X' r) -> M o X A = M o X' A.
(* The claim of the query for one row that is replaced, and every draw. *)
Hypothesis hides_row : forall o r X X' A, (forall r', r' != r -> X' r' = X r') -> M o X A <= expR e * M o X' A + d.

(* The rows of a list are replaced. *)
Definition replace_rows (s : seq I) (X X' : I -> T) r := if r \in s then X' r else X r.

(* A list of n rows costs n times as much. *)
Lemma hides_rows o (s : seq I) X X' A :
  M o X A <= expR (e *+ size s) * M o (replace_rows s X X') A + d * \sum_(j < size s) expR (e *+ j).
Proof.
have := @U1 R S (fun n => M o (replace_rows (take n s) X X')) e d A (size s); rewrite take_size take0.
apply=> n S' ns; have r0 : I by case: (s) ns => [|x t] //.
apply: (@hides_row o (nth r0 s n)) => r' ne; rewrite /replace_rows (take_nth r0) // mem_rcons inE.
by rewrite (negbTE ne).
Qed.

(* (Y2) for eps and delta: rows of one person are replaced, of which at most c are kept in every draw; the draw stays secret. *)
Theorem Y2_kept (mine : {set I}) X X' A : (forall r, r \notin mine -> X' r = X r) -> (forall o, (#|kept o :&: mine| <= c)%N) ->
  \sum_o w o * M o X A <= expR (e *+ c) * (\sum_o w o * M o X' A) + (\sum_o w o) * (d * \sum_(j < c) expR (e *+ j)).
Proof.
move=> others few; rewrite mulr_sumr mulr_suml -big_split /=; apply: ler_sum => o _.
rewrite mulrCA -mulrDr; apply: ler_wpmul2l => //.
set s := enum (kept o :&: mine); have size_s : (size s <= c)%N by rewrite -cardE.
have same : M o (replace_rows s X X') A = M o X' A.
  apply: sees_kept => r kr; rewrite /replace_rows mem_enum inE kr /=.
  by case: (boolP (r \in mine)) => // /others->.
have := hides_rows o s X X' A; rewrite same => h; apply: (le_trans h).
apply: ler_add.
  by apply: ler_wpmul2r => //; rewrite ler_expR ler_wpmuln2l.
apply: ler_wpmul2l => //; rewrite -(subnKC size_s) big_split_ord /= ler_addl.
by apply: sumr_ge0 => j _; exact/ltW/expR_gt0.
Qed.
End Kept.
