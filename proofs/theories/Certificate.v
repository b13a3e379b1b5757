(* (C5) of count: the checker of certificates as the program runs it, on whole numbers of 64 bits. What it accepts is within 1/256 of E,
   whoever computed it, and a count that is made from accepted certificates is differentially private. Axioms: the three of
   mathcomp-analysis where the reals come in; the checker and its arithmetic need none. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.classical Require Import boolp classical_sets.
From mathcomp.analysis Require Import reals constructive_ereal sequences esum exp.
From wallflower Require Import Extension Duality Noise Real Count.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* Whole numbers of `bits` bits with a sign, as processors add and multiply them: what does not fit wraps around. *)
Section Machine.
Variable bits : nat.
Notation half := ((2 ^ bits)%N%:Z).

(* The number of bits + 1 bits that a whole number becomes. *)
Definition wrap (z : int) : int := ((z + half) %% (half + half))%Z - half.
(* A sum as a loop computes it. *)
Definition machine_sum (s : seq int) : int := foldl (fun z x => wrap (z + x)) 0 s.
(* What the machine holds without loss. *)
Definition fits (z : int) := - half <= z < half.

(* The modulus is not 0. *)
Lemma half_gt0 : 0 < half.
Proof. by rewrite ltz_nat expn_gt0. Qed.

(* Numbers that fit stay. *)
Lemma wrap_fits z : fits z -> wrap z = z.
Proof.
case/andP=> lo up; rewrite /wrap modz_small ?addrK //.
by rewrite -ler_subl_addr sub0r lo ltr_add2r.
Qed.

(* To wrap before an addition changes nothing after it. *)
Lemma wrapD z x : wrap (wrap z + x) = wrap (z + x).
Proof.
rewrite /wrap; congr (_ - _).
by rewrite [_ - half + x]addrAC subrK modzDml addrAC.
Qed.

(* A loop of additions is one addition. *)
Lemma machine_sum_from z s : foldl (fun z x => wrap (z + x)) (wrap z) s = wrap (z + \sum_(x <- s) x).
Proof.
elim: s z => [|x s IH] z /=; first by rewrite big_nil addr0.
by rewrite wrapD IH big_cons addrA.
Qed.

(* If the true sum fits, the loop returns it, in whatever order it adds and whatever overflows on the way. *)
Theorem machine_sum_exact s : fits (\sum_(x <- s) x) -> machine_sum s = \sum_(x <- s) x.
Proof.
move=> fit; rewrite /machine_sum.
have z0 : 0 = wrap 0 by rewrite wrap_fits // /fits oppr_le0 (ltW half_gt0) half_gt0.
by rewrite [X in foldl _ X]z0 machine_sum_from add0r wrap_fits.
Qed.

(* At most n numbers from 0 to B have a sum that fits if n B does. *)
Theorem bounded_sum_fits (s : seq int) (n B : nat) : all (fun x => 0 <= x <= B%:Z) s -> (size s <= n)%N -> (n * B < 2 ^ bits)%N ->
  fits (\sum_(x <- s) x).
Proof.
move=> range size_s small; have : 0 <= \sum_(x <- s) x <= (size s * B)%N%:Z.
  elim: s range {size_s} => [|x s IH] /=; first by rewrite big_nil lexx.
  case/andP=> /andP[x0 xB] /IH/andP[s0 sB]; rewrite big_cons addr_ge0 //=.
  by rewrite mulSn PoszD; apply: ler_add.
case/andP=> s0 sB; apply/andP; split; first by apply: le_trans s0; rewrite oppr_le0 (ltW half_gt0).
apply: (le_lt_trans sB); rewrite ltz_nat; apply: leq_ltn_trans small.
by rewrite leq_mul2r size_s orbT.
Qed.
End Machine.

(* The checker. One record is U parts; L is the degree cap. It is, line by line, what certificate.py does. *)
Section Whole.
Variables (I : finType) (k L U : nat) (A : {set I}) (e : rel I).
Notation edge := (edge A e).

(* Who gets what, in parts. *)
Record shares := Shares { gains : I -> int; caps : I -> int; flows : I -> I -> int }.

(* Every constraint of the programme. *)
Definition accepts_shares (a : shares) :=
  [&& [forall (j | j \in A), 0 <= gains a j <= U%:Z], [forall (j | j \in A), 0 <= caps a j],
      [forall i, [forall (j | edge i j), 0 <= flows a i j <= caps a j]],
      [forall (j | j \in A), gains a j + (k%:Z - 1) * caps a j <= \sum_(i | edge i j) flows a i j]
    & [forall (i | i \in A), \sum_(j | edge i j) flows a i j <= L%:Z * U%:Z]].
(* Prices are not negative, and costs are affordable. *)
Definition accepts_prices (p c : I -> int) :=
  [forall (i | i \in A), 0 <= p i] &&
  [forall (j | j \in A), (0 <= c j) && (\sum_(i | edge i j) Num.max 0 (c j - p i) <= (k%:Z - 1) * c j)].
(* What the shares are worth. *)
Definition parts_served (a : shares) := \sum_(j in A) gains a j.
(* What the prices prove. *)
Definition parts_bound (p c : I -> int) :=
  L%:Z * (\sum_(i in A) p i) + \sum_(j in A | (k <= degree A e j)%N) Num.max 0 (U%:Z - c j).
(* A certificate whose bounds are at most 1/256 of a record apart. *)
Definition accepts (a : shares) (p c : I -> int) :=
  [&& accepts_shares a, accepts_prices p c & 256%:Z * (parts_bound p c - parts_served a) <= U%:Z].

Variable R : realFieldType.
Hypothesis U_gt0 : (0 < U)%N.
(* Parts as a number of records. *)
Definition scaled (z : int) : R := z%:~R / U%:R.

(* Order is kept. *)
Lemma scaled_le x y : (scaled x <= scaled y) = (x <= y).
Proof. by rewrite ler_pmul2r ?invr_gt0 ?ltr0n // ler_int. Qed.
(* Sums are kept. *)
Lemma scaledD x y : scaled (x + y) = scaled x + scaled y.
Proof. by rewrite /scaled rmorphD mulrDl. Qed.
(* So are differences. *)
Lemma scaledB x y : scaled (x - y) = scaled x - scaled y.
Proof. by rewrite /scaled rmorphB mulrBl. Qed.
(* Whole factors can be taken out. *)
Lemma scaledZ x y : scaled (x * y) = x%:~R * scaled y.
Proof. by rewrite /scaled rmorphM mulrA. Qed.
(* Nothing is nothing. *)
Lemma scaled0 : scaled 0 = 0.
Proof. by rewrite /scaled mul0r. Qed.
(* U parts are one record. *)
Lemma scaledU : scaled U%:Z = 1.
Proof. by rewrite /scaled divff // pnatr_eq0 -lt0n. Qed.
(* Long sums are kept. *)
Lemma scaled_sum (J : finType) (P : pred J) (f : J -> int) : scaled (\sum_(j | P j) f j) = \sum_(j | P j) scaled (f j).
Proof. by rewrite (big_morph _ scaledD scaled0). Qed.
(* The larger of two stays the larger. *)
Lemma scaled_max0 x : scaled (Num.max 0 x) = Num.max 0 (scaled x).
Proof. by rewrite -scaled0 /Num.max /Order.max !lt_neqAle !scaled_le !eq_le !scaled_le; case: ifP. Qed.

(* The same certificate, in records. *)
Definition in_records (a : shares) : allocation R I :=
  Allocation (fun j => scaled (gains a j)) (fun j => scaled (caps a j)) (fun i j => scaled (flows a i j)).

(* The bounds of the prices agree. *)
Lemma bound_in_records p c :
  dual_bound k L%:R A e (fun i => scaled (p i)) (fun j => scaled (c j)) = scaled (parts_bound p c).
Proof.
rewrite /dual_bound /parts_bound scaledD scaledZ !scaled_sum; congr (_ + _).
by apply: eq_bigr => j _; rewrite scaled_max0 scaledB scaledU.
Qed.

(* What the program accepts, the checker of rationals accepts. *)
Theorem accepts_in_records a p c : accepts a p c ->
  check_certificate k L%:R A e (in_records a) (fun i => scaled (p i)) (fun j => scaled (c j)) 256%:R^-1.
Proof.
have k1 : k%:R - 1 = (k%:Z - 1)%:~R :> R by rewrite rmorphB.
case/and3P=> /and5P[/forall_inP g /forall_inP m /forallP f /forall_inP d /forall_inP s] /andP[/forall_inP p0 /forall_inP aff] gap.
apply/and3P; split.
- apply/and5P; split.
  + by apply/forall_inP => j jA /=; rewrite -scaled0 -scaledU !scaled_le; apply: g.
  + by apply/forall_inP => j jA /=; rewrite -scaled0 scaled_le; apply: m.
  + apply/forallP => i; apply/forall_inP => j ij /=; rewrite -scaled0 !scaled_le.
    by move/forall_inP: (f i); apply.
  + by apply/forall_inP => j jA /=; rewrite k1 -scaledZ -scaledD -scaled_sum scaled_le; apply: d.
  + apply/forall_inP => i iA /=; rewrite -scaled_sum.
    have -> : L%:R = scaled (L%:Z * U%:Z) by rewrite scaledZ scaledU mulr1.
    by rewrite scaled_le; apply: s.
- apply/andP; split; apply/forall_inP => j jA; first by rewrite -scaled0 scaled_le; apply: p0.
  have /andP[c0 le] := aff j jA; rewrite /affordable -{1}scaled0 scaled_le c0 /=.
  rewrite k1 -scaledZ (eq_bigr (fun i => scaled (Num.max 0 (c j - p i)))) -?scaled_sum ?scaled_le //.
  by move=> i _; rewrite scaled_max0 scaledB.
- rewrite bound_in_records /worth /= -scaled_sum -scaledB.
  rewrite -(ler_pmul2l (_ : 0 < 256%:R)) ?ltr0n // divff ?pnatr_eq0 //.
  have -> : 256%:R = (256%:Z)%:~R :> R by [].
  by rewrite -scaledZ -scaledU scaled_le.
Qed.
End Whole.

Section Count.
Variables (R : realType) (I : finType) (T : Type) (near : T -> T -> bool) (k L U : nat).
Hypothesis U_gt0 : (0 < U)%N.
Notation table := (I -> T).
Notation all_records := (finset.setTfor (Phant I)).

(* What the program counts from: the parts that an accepted certificate serves. *)
Definition served (a : table -> shares I) (X : table) : int := parts_served all_records (a X).

(* (C5): an accepted certificate is within 1/256 of E, whoever computed it. *)
Theorem C5_within (a : shares I) p c (X : table) : accepts k L U all_records (graph near X) a p c ->
  E R near k L X - 256%:R^-1 <= scaled U R (parts_served all_records a) <= E R near k L X.
Proof.
move=> /(accepts_in_records R U_gt0)/certificate_sound[fa best].
have w : worth all_records (in_records U R a) = scaled U R (parts_served all_records a) by rewrite scaled_sum.
apply/andP; split.
  rewrite ler_subl_addr; apply: sup_le_ub; first by case: (E_has R near k L X).
  by move=> _ [b fb <-]; rewrite -w; apply: best.
by rewrite -w; apply: sup_upper_bound; [exact: E_has | exists (in_records U R a)].
Qed.

(* Steps of 1/128, rounded, by whole numbers alone: what the program computes. *)
Definition whole_steps (n : nat) (W : int) : int := ((256%:Z * (n%:Z * U%:Z - W) + U%:Z) %/ (2%:Z * U%:Z))%Z.

(* They are the steps of (N). *)
Theorem whole_stepsE n W : whole_steps n W = steps n (scaled U R W).
Proof.
have U2 : 0 < 2%:Z * U%:Z by rewrite mulr_gt0 // ltz_nat.
have U2R : 0 < (2%:Z * U%:Z)%:~R :> R by rewrite ltr0z.
set z := 256%:Z * (n%:Z * U%:Z - W) + U%:Z.
have eq : 128%:R * (n%:R - scaled U R W) + 2%:R^-1 = z%:~R / (2%:Z * U%:Z)%:~R.
  have Un : U%:R != 0 :> R by rewrite pnatr_eq0 -lt0n.
  have n2 : 2%:R != 0 :> R by rewrite pnatr_eq0.
  rewrite /z /scaled !rmorphD !rmorphM rmorphB /= rmorphM /= mulrDl; congr (_ + _); last first.
    by rewrite invfM mulrCA divff // mulr1.
  have ne : 2%:R * U%:R != 0 :> R by rewrite mulf_neq0.
  by apply: (canRL (mulfK ne)); rewrite mulrACA -natrM mulrBl divfK.
apply/eqP; rewrite /steps eq eq_le; apply/andP; split.
  rewrite -floor_ge_int ler_pdivl_mulr // -intrM ler_int.
  by rewrite /whole_steps -/z; apply: lez_floor; rewrite gt_eqF.
rewrite -ltz_addr1 -floor_lt_int ltr_pdivr_mulr // -intrM ltr_int.
by rewrite /whole_steps -/z; apply: ltz_ceil.
Qed.

(* The count whose certificates are all accepted is eps-differentially private, for every set of answers. Nothing is assumed of how
   certificates are computed. *)
Theorem C5_count_sets (a : table -> shares I) (p c : table -> I -> int) (n : nat) (b eps : R) v (X X' : table) (S : set int) :
  (forall X, accepts k L U all_records (graph near X) (a X) (p X) (c X)) -> replaced v X X' ->
  0 < eps -> 0 < b -> (sensitivity L)%:R / eps <= b ->
  (\esum_(y in S) (discrete_laplace b (y - whole_steps n (served a X)))%:E <=
   (expR eps)%:E * \esum_(y in S) (discrete_laplace b (y - whole_steps n (served a X')))%:E)%E.
Proof.
move=> ok same e0 b0 le.
have := @count_extension_sets R I T near k L (fun X => scaled U R (served a X)) n b eps v X X' S.
rewrite -!whole_stepsE; apply=> // Y; exact: C5_within (ok Y).
Qed.
End Count.
