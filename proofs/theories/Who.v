(* (L), (T), (A), (R) of who: one coin for each record, the first h that are named; a detector that was released before. The first
   sections use no axioms, the last one those of mathcomp-analysis. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.classical Require Import boolp classical_sets.
From mathcomp.analysis Require Import reals constructive_ereal esum sequences exp.
From wallflower Require Import Sums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* Independent coins, one for each member of I; q is the chance to be skipped (false). *)
Section Coins.
Variables (R : realFieldType) (I : finType) (q : R).
Notation coins := {ffun I -> bool}.
(* One coin. *)
Definition coin (b : bool) : R := if b then 1 - q else q.
(* All coins together. *)
Definition weight (c : coins) := \prod_i coin (c i).
(* The chance of an event. *)
Definition chance (E : pred coins) := \sum_(c | E c) weight c.

(* Chances add up to 1. *)
Lemma chance_total : chance predT = 1.
Proof.
rewrite /chance /weight -(bigA_distr_bigA (fun (i : I) b => coin b)); apply: big1 => i _.
by rewrite big_bool /= subrK.
Qed.

(* The coin of i is put on the side b. *)
Definition toss (i : I) (b : bool) (c : coins) : coins := [ffun j => if j == i then b else c j].

(* What that does to the weight. *)
Lemma weight_toss i b c : weight (toss i b c) = coin b * \prod_(j | j != i) coin (c j).
Proof.
rewrite /weight (bigD1 i) //= ffunE eqxx; congr (_ * _).
by apply: eq_bigr => j /negbTE ji; rewrite ffunE ji.
Qed.

(* An event that does not look at the coin of i. *)
Definition blind i (E : pred coins) := forall b c, E (toss i b c) = E c.

(* A coin that lies there already. *)
Lemma toss_same i (c : coins) : toss i (c i) c = c.
Proof. by apply/ffunP=> j; rewrite ffunE; case: eqP => [->|]. Qed.

(* The last toss counts. *)
Lemma toss_toss i b b' c : toss i b (toss i b' c) = toss i b c.
Proof. by apply/ffunP=> j; rewrite !ffunE; case: eqP. Qed.

(* A coin is independent of what does not look at it. *)
Lemma chance_coin i E : blind i E -> chance (fun c => E c && ~~ c i) = q * chance E.
Proof.
move=> bE; rewrite /chance [X in _ = q * X](bigID (fun c : coins => c i)) /=.
set S1 := \sum_(c | E c && c i) weight c; set S0 := \sum_(c | E c && ~~ c i) weight c.
have swap : q * S1 = (1 - q) * S0.
  rewrite /S1 (reindex_onto (toss i true) (toss i false)) /=; last first.
    by move=> c /andP[_ ci]; rewrite toss_toss -{2}(toss_same i c) ci.
  rewrite /S0 !mulr_sumr; apply: eq_big => [c|c /andP[_ /eqP same]].
    rewrite bE ffunE eqxx andbT toss_toss; congr (_ && _).
    apply/eqP/idP => [<-|ci]; first by rewrite ffunE eqxx.
    by rewrite -{2}(toss_same i c) (negbTE ci).
  by rewrite -{2}same toss_toss !weight_toss /= mulrCA.
by rewrite mulrDr swap -mulrDl subrK mul1r.
Qed.
End Coins.

(* The first h of a list whose coins name them. *)
Section Lists.
Variables (I : finType) (h : nat).
Notation coins := {ffun I -> bool}.
(* Whom the coins name: the first h of the order whose coins do. *)
Definition named (s : seq I) (c : coins) := take h [seq j <- s | c j].
(* The order without i. *)
Definition without (i : I) (s : seq I) := [seq j <- s | j != i].
(* i would be named beside o if its coin let it: it is in the order, and o is not yet full when its turn comes. *)
Definition beside (s : seq I) i o := (i \in s) && ~~ ((size o == h) && all (mem (take (index i s) s)) o).

(* Who is skipped might not be there. *)
Lemma named_skipped s i (c : coins) : ~~ c i -> named s c = named (without i s) c.
Proof.
move=> ci; rewrite /named /without -filter_predI; congr take.
by apply: eq_filter => j /=; case: eqVneq => [->|]; rewrite ?andbT ?(negbTE ci).
Qed.

(* Without i in the order its coin does not matter. *)
Lemma named_blind s i b c : named (without i s) (toss i b c) = named (without i s) c.
Proof.
rewrite /named; congr take; apply: eq_in_filter => j.
by rewrite mem_filter ffunE => /andP[/negbTE-> _].
Qed.

(* If its coin names i, a list without i comes out exactly where its turn does not come. *)
Lemma named_tossed s i (c : coins) o : uniq s -> i \notin o -> c i ->
  (named s c == o) = (named (without i s) c == o) && ~~ beside s i o.
Proof.
move=> us io ci; rewrite /beside; case: (boolP (i \in s)) => [ins|ins]; last first.
  rewrite andbT /without; congr (named _ _ == _); symmetry; apply/all_filterP/allP => j js.
  by apply: contraNneq ins => <-.
case/splitPr: ins us => s1 s2; rewrite cat_uniq /= negb_or -!andbA => /and5P[u1 i1 d12 i2 u2].
rewrite negbK index_cat (negbTE i1) /= eqxx addn0 take_size_cat //.
have -> : without i (s1 ++ i :: s2) = s1 ++ s2.
  rewrite /without filter_cat /= eqxx /=; congr (_ ++ _); apply/all_filterP/allP => j js.
    by apply: contraNneq i1 => <-.
  by apply: contraNneq i2 => <-.
rewrite /named !filter_cat /= ci; set F1 := filter _ s1; set F2 := filter _ s2.
case: (leqP h (size F1)) => [le|lt].
  rewrite !takel_cat //; case: eqP => //= <-; rewrite size_takel // eqxx /=.
  by symmetry; apply/allP => j /mem_take; rewrite mem_filter => /andP[].
rewrite !take_cat ltnNge (ltnW lt) /= -(subnSK lt) /=.
rewrite (_ : (_ == o) = false); last first.
  by apply: contraNF io => /eqP <-; rewrite mem_cat inE eqxx orbT.
symmetry; apply/negP => /and3P[/eqP <- ].
rewrite size_cat => /eqP full /allP sub.
case E : (take _ F2) full sub => [|j r] full sub.
  by move: lt; rewrite -full addn0 ltnn.
have /mem_take : j \in take (h - (size F1).+1).+1 F2 by rewrite E inE eqxx.
rewrite mem_filter => /andP[_ j2].
have /= j1 := sub j; rewrite mem_cat inE eqxx orbT in j1.
by case/hasP: d12; exists j => //; apply: j1.
Qed.
End Lists.

Section Law.
Variables (R : realFieldType) (I : finType) (q : R) (h : nat).
(* The law of the list. *)
Definition law (s o : seq I) := chance q (fun c => named h s c == o).

(* (L): a list without i has the chance that it has without record i, times q if the turn of i would have come. *)
Theorem law_without s i o : uniq s -> i \notin o ->
  law s o = law (without i s) o * (if beside h s i o then q else 1).
Proof.
move=> us io; rewrite /law; case: ifP => bes.
  rewrite mulrC -(@chance_coin _ _ _ i); last by move=> b c; rewrite named_blind.
  apply: eq_bigl => c; case: (boolP (c i)) => ci; last by rewrite (named_skipped _ _ ci) andbT.
  by rewrite (named_tossed _ us io ci) bes andbF.
rewrite mulr1; apply: eq_bigl => c; case: (boolP (c i)) => ci; last by rewrite (named_skipped _ _ ci).
by rewrite (named_tossed _ us io ci) bes andbT.
Qed.

(* What the program does: walk down, toss one coin for each record that is met, stop at h names. *)
Fixpoint walk (left : nat) (s o : seq I) : R :=
  if left is left'.+1 then
    if s is j :: s' then q * walk left s' o + (1 - q) * (if o is j' :: o' then (j' == j)%:R * walk left' s' o' else 0)
    else (o == [::])%:R
  else (o == [::])%:R.
End Law.

(* The same for a coin that names. *)
Lemma chance_heads (R : realFieldType) (I : finType) (q : R) i (E : pred {ffun I -> bool}) :
  blind i E -> chance q (fun c => E c && c i) = (1 - q) * chance q E.
Proof.
move=> bE; rewrite mulrBl mul1r -(chance_coin _ bE) /chance [X in X - _](bigID (fun c : {ffun I -> bool} => c i)) /=.
by rewrite addrK.
Qed.

(* Events that are sure or impossible. *)
Lemma chance_const (R : realFieldType) (I : finType) (q : R) (b : bool) : chance q (fun _ : {ffun I -> bool} => b) = b%:R.
Proof. by case: b; [exact: chance_total | rewrite /chance big_pred0]. Qed.

(* Coins that are tossed when a record is met give the law of one coin for each record. *)
Theorem walk_law (R : realFieldType) (I : finType) (q : R) h (s o : seq I) : uniq s -> walk q h s o = law q h s o.
Proof.
elim: s h o => [|j s IH] [|h] o /=.
- by rewrite /law -(chance_const I q) => _; apply: eq_bigl => c; rewrite eq_sym.
- by rewrite /law -(chance_const I q) => _; apply: eq_bigl => c; rewrite eq_sym.
- by rewrite /law -(chance_const I q) => _; apply: eq_bigl => c; rewrite /named take0 eq_sym.
case/andP=> js us.
have blindj h' o' : blind j (fun c : {ffun I -> bool} => named h' s c == o').
  move=> b c; rewrite /named; congr (take _ _ == _); apply: eq_in_filter => i si; rewrite ffunE.
  by case: eqP => // ij; rewrite -ij si in js.
rewrite IH // /law [RHS]/chance (bigID (fun c : {ffun I -> bool} => c j)) /= [RHS]addrC; congr (_ + _).
  rewrite -(chance_coin q (blindj h.+1 o)); apply: eq_bigl => c.
  by rewrite /named /=; case: (c j); rewrite ?andbF ?andbT.
case: o => [|j' o'].
  by rewrite mulr0 big_pred0 // => c; rewrite /named /=; case: (c j); rewrite ?andbF.
rewrite IH // /law; have [->|ne] := eqVneq j' j; last first.
  rewrite mul0r mulr0 big_pred0 // => c; rewrite /named /=; case: (c j); rewrite ?andbF //= eqseq_cons.
  by rewrite eq_sym (negbTE ne).
rewrite mul1r -(chance_heads q (blindj h o')); apply: eq_bigl => c.
by rewrite /named /=; case: (c j); rewrite ?andbF ?andbT //= eqseq_cons eqxx.
Qed.

(* Two tables that are adjacent in record i: which other records are above the bar, and the order of any two of them, are the same. Where i
   stands, and whether it is above the bar, may differ. *)
Section Tables.
Variables (R : realFieldType) (I : finType) (q : R) (h : nat) (i : I).
Hypotheses (q_gt0 : 0 < q) (q_le1 : q <= 1).

(* A table, as far as the walk sees it: who is above the bar, and who is ahead of whom. *)
Record table := Table {
  above : pred I;
  ahead : rel I;
  ahead_total : ssrbool.total ahead;
  ahead_trans : transitive ahead;
  ahead_anti : antisymmetric ahead }.
(* The same but for i. *)
Definition adjacent (X X' : table) :=
  (forall j, j != i -> above X j = above X' j) /\ (forall j k, j != i -> k != i -> ahead X j k = ahead X' j k).
(* The records above the bar, the highest first. *)
Definition order (X : table) := sort (ahead X) [seq j <- enum I | above X j].
(* The law of the list. *)
Definition who (X : table) (o : seq I) := law q h (order X) o.
(* The chance that the list is in Z. *)
Definition who_in (X : table) (Z : pred (seq I)) := chance q (fun c => Z (named h (order X) c)).

(* The order of the others is the same. *)
Lemma order_without X X' : adjacent X X' -> without i (order X) = without i (order X').
Proof.
case=> same_above same_order; rewrite /without /order.
have E : [seq j <- [seq j <- enum I | above X j] | j != i] = [seq j <- [seq j <- enum I | above X' j] | j != i].
  by rewrite -!filter_predI; apply: eq_filter => j /=; case: (boolP (j != i)) => //= ji; rewrite same_above.
rewrite (filter_sort (@ahead_total X) (@ahead_trans X)) (filter_sort (@ahead_total X') (@ahead_trans X')) E.
set l := filter _ _; apply: (sorted_eq (@ahead_trans X') (@ahead_anti X')).
- rewrite -(@eq_in_sorted _ (fun j => j != i) (ahead X)); first by apply: sort_sorted; apply: ahead_total.
    by move=> j k ji ki; rewrite same_order.
  by rewrite all_sort filter_all.
- by apply: sort_sorted; apply: ahead_total.
- by rewrite perm_sort perm_sym perm_sort.
Qed.

(* Nobody stands in the order twice. *)
Lemma order_uniq X : uniq (order X).
Proof. by rewrite sort_uniq filter_uniq // enum_uniq. Qed.

(* (L): the chances of a list without i are one chance P, times q or 1: their ratio is q, 1 or 1/q, and q is e^-eps. *)
Theorem L_ratio X X' (o : seq I) : adjacent X X' -> i \notin o ->
  exists P w w' : R, [/\ 0 <= P, who X o = P * w, who X' o = P * w', w \in [:: q; 1] & w' \in [:: q; 1]].
Proof.
move=> same io; exists (law q h (without i (order X)) o).
exists (if beside h (order X) i o then q else 1), (if beside h (order X') i o then q else 1).
rewrite /who (law_without _ _ (order_uniq X) io) (law_without _ _ (order_uniq X') io) (order_without same).
split=> //; try by case: ifP; rewrite !inE eqxx ?orbT.
apply: sumr_ge0 => c _; apply: prodr_ge0 => j _; rewrite /coin.
by case: ifP => _; rewrite ?subr_ge0 // ltW.
Qed.

(* Weights are not negative. *)
Lemma weight_ge0 (c : {ffun I -> bool}) : 0 <= weight q c.
Proof. by apply: prodr_ge0 => j _; rewrite /coin; case: ifP => _; rewrite ?subr_ge0 // ltW. Qed.

(* A larger event has the larger chance. *)
Lemma chance_sub (E E' : pred {ffun I -> bool}) : (forall c, E c -> E' c) -> chance q E <= chance q E'.
Proof.
move=> sub; rewrite /chance [leLHS]big_mkcond [leRHS]big_mkcond; apply: ler_sum => c _.
by case: ifP => [/sub->//|_]; case: ifP => // _; apply: weight_ge0.
Qed.

(* (L) for every set of lists that do not name i. *)
Theorem L_sets X X' (Z : pred (seq I)) : adjacent X X' -> (forall o, Z o -> i \notin o) ->
  who_in X Z <= q^-1 * who_in X' Z.
Proof.
move=> same free; rewrite ler_pdivl_mull //.
apply: (@le_trans _ _ (q * chance q (fun c => Z (named h (without i (order X)) c)))).
  rewrite ler_pmul2l //; apply: chance_sub => c Zc; have io := free _ Zc.
  case: (boolP (c i)) => ci; last by rewrite -(named_skipped _ _ ci).
  have := named_tossed h (order_uniq X) io ci; rewrite eqxx => /esym/andP[/eqP out _].
  by rewrite out.
rewrite -(@chance_coin _ _ _ i); last by move=> b c; rewrite named_blind.
by apply: chance_sub => c /andP[Zc ci]; rewrite (named_skipped _ _ ci) -(order_without same).
Qed.

(* (A), given the detector: any set of lists, up to the chance that i is named. *)
Lemma A_given X X' (Z : pred (seq I)) : adjacent X X' ->
  who_in X Z <= q^-1 * who_in X' Z + who_in X (fun o => i \in o).
Proof.
move=> same.
have free o : Z o && (i \notin o) -> i \notin o by case/andP.
have := @L_sets X X' (fun o => Z o && (i \notin o)) same free.
have part : who_in X Z <= who_in X (fun o => Z o && (i \notin o)) + who_in X (fun o => i \in o).
  rewrite /who_in /chance [leLHS]big_mkcond [X in X + _]big_mkcond [X in _ + X]big_mkcond -big_split /=.
  apply: ler_sum => c _; have w0 := weight_ge0 c.
  by case: (Z _); case: (i \in _); rewrite /= ?addr0 ?add0r ?addr_ge0.
move=> le; apply: (le_trans part); rewrite ler_add2r; apply: (le_trans le).
by rewrite ler_wpmul2l ?invr_ge0 ?(ltW q_gt0) //; apply: chance_sub => c /andP[].
Qed.

(* Who stands before i. *)
Definition before (s : seq I) := take (index i s) s.

(* (R): i is named with the chance that its coin names it, times that of fewer than h names among the coins of those before it. *)
Theorem R_named X : above X i ->
  who_in X (fun o => i \in o) = (1 - q) * chance q (fun c => (count c (before (order X)) < h)%N).
Proof.
move=> up; have us := order_uniq X.
have ins : i \in order X by rewrite mem_sort mem_filter up mem_enum.
have blind_before : blind i (fun c : {ffun I -> bool} => (count c (before (order X)) < h)%N).
  move=> b c; congr (_ < _)%N; apply: eq_in_count => j jb; rewrite ffunE; case: eqP => // ji.
  by move: jb; rewrite ji /before in_take // ltnn.
rewrite -(chance_heads q blind_before) /who_in /chance; apply: eq_bigl => c.
have eq : order X = before (order X) ++ i :: drop (index i (order X)).+1 (order X).
  by rewrite /before -[LHS](cat_take_drop (index i (order X))) (drop_nth i) ?index_mem // nth_index.
have fresh : i \notin before (order X) by rewrite /before in_take // ltnn.
rewrite /named {1}eq filter_cat /= -size_filter; set F := filter _ (before _).
have nF : i \notin F by rewrite mem_filter (negbTE fresh) andbF.
case: (boolP (c i)) => [ci|/negbTE nci].
  rewrite andbT; case: (ltnP (size F) h) => le.
    by rewrite take_cat ltnNge (ltnW le) /= -(subnSK le) /= mem_cat inE eqxx orbT.
  by rewrite takel_cat //; apply/negP => /mem_take; rewrite (negbTE nF).
by rewrite andbF; apply/negP => /mem_take; rewrite mem_cat (negbTE nF) /= mem_filter nci.
Qed.

(* (R): with more records before it, nobody is named more often. *)
Theorem R_falls (s s' : seq I) : chance q (fun c => (count c (s ++ s') < h)%N) <= chance q (fun c => (count c s < h)%N).
Proof. by apply: chance_sub => c; rewrite count_cat; apply: leq_ltn_trans; apply: leq_addr. Qed.
End Tables.

(* With a detector that was released before, from any set of detectors; given it, scores are functions of one record. *)
Section Detector.
Variables (R : realType) (I : finType) (D : choiceType) (h : nat) (i : I) (e1 eps : R).
Hypothesis eps_ge0 : 0 <= eps.
Variables (p p' : D -> R) (X X' : D -> table I).
Hypotheses (lp : is_law p) (lp' : is_law p') (close : forall d, p d <= expR e1 * p' d).
Hypothesis same : forall d, adjacent i (X d) (X' d).
Notation q := (expR (- eps)).

(* q is a chance. *)
Lemma skip_range : 0 < q /\ q <= 1.
Proof. by rewrite expR_gt0 -[X in _ <= X]expR0 ler_expR oppr_le0. Qed.

(* (T): a detector and a list that does not name i. *)
Theorem T_pair d (o : seq I) : i \notin o -> p d * who q h (X d) o <= expR (e1 + eps) * (p' d * who q h (X' d) o).
Proof.
move=> io; have [q0 q1] := skip_range; have [pge _] := lp.
have [P [w [w' [P0 -> -> hw hw']]]] := L_ratio h q0 q1 (same d) io.
have w0 : 0 <= w by move: hw; rewrite !inE => /orP[] /eqP ->; rewrite ?ler01 // ltW.
have ww : w <= expR eps * w'.
  have q0' := ltW q0; have ex : expR eps = q^-1 by rewrite expRN invrK.
  rewrite ex ler_pdivl_mull //; move: hw hw'; rewrite !inE.
  by case/orP=> /eqP->; case/orP=> /eqP->; rewrite ?mulr1 ?ler_pimull ?mulr_ile1.
rewrite expRD mulrACA; apply: ler_pmul; [exact: pge | exact: mulr_ge0 | exact: close |].
by rewrite mulrCA ler_wpmul2l.
Qed.

(* Chances of lists are chances. *)
Lemma who_in_range (Y : table I) (Z : pred (seq I)) : 0 <= who_in q h Y Z <= 1.
Proof.
have [q0 q1] := skip_range; apply/andP; split; first by apply: sumr_ge0 => c _; exact: weight_ge0.
by rewrite -(chance_total I q); apply: chance_sub.
Qed.

(* (A): any set of outcomes, which is a set of lists for each detector, up to the chance that i is named. *)
Theorem A_sets (Z : D -> pred (seq I)) :
  Sums.total (fun d => p d * who_in q h (X d) (Z d)) <=
  expR (e1 + eps) * Sums.total (fun d => p' d * who_in q h (X' d) (Z d)) +
  Sums.total (fun d => p d * who_in q h (X d) (fun o => i \in o)).
Proof.
have [q0 q1] := skip_range; have [pge _] := lp; have [pge' _] := lp'.
have ap := law_adds_up lp; have ap' := law_adds_up lp'.
have a1 := mean_adds_up ap' (fun d => who_in_range (X' d) (Z d)).
have a2 := mean_adds_up ap (fun d => who_in_range (X d) (fun o => i \in o)).
have K0 : 0 <= expR (e1 + eps) := ltW (expR_gt0 _).
rewrite -totalZ // -totalD //; last exact: adds_upZ.
apply: total_le => [d|]; last by apply: adds_upD => //; apply: adds_upZ.
have /andP[w0 _] := who_in_range (X d) (Z d); have /andP[w0' _] := who_in_range (X' d) (Z d).
rewrite mulr_ge0 //=; apply: (le_trans (ler_wpmul2l (pge d) (A_given h q0 q1 (Z d) (same d)))).
rewrite mulrDr ler_add2r expRD mulrACA -expRN opprK.
by apply: ler_pmul => //; rewrite mulr_ge0 // ltW // expR_gt0.
Qed.
End Detector.
