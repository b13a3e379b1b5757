"""Two keys say together whether a score reaches a threshold, each alone says nothing, and nothing false is accepted."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensor_laws import Script

from wallflower.errors import DataError, ParameterError
from wallflower.noise import system_noise
from wallflower.sensors.comparison import (
    Keys,
    correction_words,
    deal,
    evaluate,
    evaluate_key,
    evaluate_tagged,
    judge,
    judge_tagged,
    open_flags,
)


def open_tagged_flags(share_a, share_b, tags):
    flags, is_sound = judge_tagged(share_a, share_b, tags)
    if not is_sound.all():
        raise DataError("shares: neither 0 nor 1")
    return flags


pytestmark = pytest.mark.slow  # together more than `make check` has room for

WORDS = np.random.default_rng(11)


def said(keys, threshold):
    return open_flags(evaluate(0, keys[0], threshold), evaluate(1, keys[1], threshold))


def test_every_score_and_every_threshold_at_six_bits_under_random_masks():
    scores = np.repeat(np.arange(32), 40)
    keys = deal(scores, 6)
    for threshold in range(33):
        assert np.array_equal(said(keys, threshold), scores >= threshold)


@pytest.mark.parametrize("score", [0, 1, 15, 16, 30, 31])
def test_every_mask_and_every_threshold_at_six_bits(score):
    """The first words are mask and offset, so a script can go through all masks."""
    first = [mask | int(WORDS.integers(2**32)) << 32 for mask in range(64)]
    rest = WORDS.integers(0, 2**64, 4 * 64, dtype=np.uint64).tolist()
    keys = deal(np.full(64, score), 6, noise=Script(first + rest))
    assert np.array_equal(keys[0].masked, (score + np.arange(64)) % 64)
    for threshold in range(33):
        assert np.array_equal(said(keys, threshold), np.full(64, score >= threshold))


def test_all_of_all_at_six_bits():
    scores, masks = (side.ravel() for side in np.meshgrid(np.arange(32), np.arange(64)))
    first = [int(mask) | int(high) << 32 for mask, high in zip(masks, WORDS.integers(0, 2**32, 2048), strict=True)]
    keys = deal(scores, 6, noise=Script(first + WORDS.integers(0, 2**64, 4 * 2048, dtype=np.uint64).tolist()))
    for threshold in range(33):
        assert np.array_equal(said(keys, threshold), scores >= threshold)


def test_the_function_behind_it_is_beta_below_alpha_and_nothing_above():
    """Every alpha and every x of five levels, two lanes at once."""
    alphas, at = (side.ravel().astype(np.uint64) for side in np.meshgrid(np.arange(32), np.arange(32)))
    betas = WORDS.integers(0, 2**32, (1024, 2), dtype=np.uint32)
    roots = WORDS.integers(0, 2**64, (2, 1024, 2), dtype=np.uint64)
    words = correction_words(alphas, betas, roots, 5)
    total = evaluate_key(0, at, roots[0], *words, 2) + evaluate_key(1, at, roots[1], *words, 2)
    assert np.array_equal(total, np.where((at < alphas)[:, None], betas, 0))


@settings(max_examples=40, deadline=None)
@given(bits=st.sampled_from([2, 3, 8, 16, 17, 24, 31, 32]), data=st.data())
def test_any_number_of_bits(bits, data):
    score = st.integers(0, 2 ** (bits - 1) - 1)
    scores = np.array(data.draw(st.lists(score, min_size=1, max_size=6)))
    keys = deal(scores, bits)
    for threshold in {0, 1, 2 ** (bits - 1), data.draw(score), *scores.tolist()}:
        assert np.array_equal(said(keys, threshold), scores >= threshold)


def test_parts_of_a_batch_do_not_show():
    scores = WORDS.integers(0, 2**15, 5000)
    assert np.array_equal(said(deal(scores, 16), 12345), scores >= 12345)
    assert len(said(deal([], 16), 3)) == 0


@pytest.mark.parametrize("bits", [2, 6, 16, 17, 32])
@pytest.mark.parametrize("tagged", [False, True])
def test_keys_survive_the_wire(bits, tagged):
    scores = WORDS.integers(0, 2 ** (bits - 1), 50)
    tags = WORDS.integers(1, 2**32, 50) if tagged else None
    keys = deal(scores, bits, tags=tags)
    sent = [Keys.from_bytes(key.to_bytes(), 50, bits, tagged=tagged) for key in keys]
    for key, copy in zip(keys, sent, strict=True):
        assert copy.to_bytes() == key.to_bytes()
        assert copy.has_tags is tagged
    assert np.array_equal(said(sent, 2 ** (bits - 2)), scores >= 2 ** (bits - 2))


def test_keys_are_as_small_as_stated():
    assert len(deal([7], 16)[0].to_bytes()) == 330
    assert len(deal([7], 16, tags=[9])[0].to_bytes()) == 402


def test_bytes_that_are_no_keys_are_refused():
    raw = deal([3, 4], 6)[0].to_bytes()
    for wrong in (raw[:-1], raw + b"x", b""):
        with pytest.raises(DataError, match="length"):
            Keys.from_bytes(wrong, 2, 6)
    for count in (1, 3, -2):
        with pytest.raises(DataError, match="length"):
            Keys.from_bytes(raw, count, 6)
    with pytest.raises(DataError, match="not made for 6 bits"):
        Keys.from_bytes(b"\xff" * len(raw), 2, 6)
    steps = len(raw) - 2 * 4 - 2 * 4  # the steps stand before the offsets
    with pytest.raises(DataError, match="not made for 6 bits"):
        Keys.from_bytes(raw[:steps] + b"\x00\x04\x00\x00" * 2 + raw[steps + 8 :], 2, 6)
    with pytest.raises(ParameterError, match="bits"):
        Keys.from_bytes(raw, 2, 40)


# Tampering


def test_a_changed_share_is_refused_unless_it_hits_zero_or_one():
    scores = np.array([3, 20])
    keys = deal(scores, 6)
    share = evaluate(0, keys[0], 10), evaluate(1, keys[1], 10)
    assert np.array_equal(open_flags(*share), [False, True])
    for change in (2, 7, 2**31, 2**32 - 2):
        with pytest.raises(DataError, match="neither 0 nor 1"):
            open_flags(share[0] + np.array([0, change], dtype=np.uint32), share[1])
    flags, sound = judge(share[0] + np.array([5, 0], dtype=np.uint32), share[1])
    assert sound.tolist() == [False, True]
    assert flags[1]


@pytest.mark.parametrize("what", ["seeds", "values", "steps", "roots", "masked"])
def test_a_changed_key_is_noticed(what):
    scores = np.full(2000, 9)
    keys = deal(scores, 16)
    array = getattr(keys[0], what).copy()
    array ^= np.array(1 << 5, dtype=array.dtype)
    parts = {name: getattr(keys[0], name) for name in Keys.__slots__} | {what: array}
    _, sound = judge(evaluate(0, Keys(**parts), 8), evaluate(1, keys[1], 8))
    assert sound.mean() < 0.9


def test_servers_with_different_thresholds_are_noticed():
    keys = deal(np.arange(1000), 16)
    _, sound = judge(evaluate(0, keys[0], 400), evaluate(1, keys[1], 401))
    assert sound.mean() < 0.01


def test_tags_are_right_for_every_threshold_at_six_bits():
    scores = np.repeat(np.arange(32), 10)
    tags = WORDS.integers(1, 2**32, 320)
    keys = deal(scores, 6, tags=tags)
    for threshold in range(33):
        shares = [evaluate_tagged(party, keys[party], threshold) for party in (0, 1)]
        assert np.array_equal(open_tagged_flags(*shares, tags), scores >= threshold)
        assert np.array_equal(said(keys, threshold), scores >= threshold)


@pytest.mark.parametrize("change", [(1, 0), (0, 1), (1, 1), (2**32 - 1, 0), (1, 12345), (2**32 - 1, 2**31)])
def test_a_server_that_does_not_know_the_tag_cannot_turn_an_answer(change):
    scores = np.arange(20_000) % 32
    tags = WORDS.integers(1, 2**32, 20_000)
    keys = deal(scores, 6, tags=tags)
    shares = [evaluate_tagged(party, keys[party], 16) for party in (0, 1)]
    _, sound = judge_tagged(shares[0] + np.array(change, dtype=np.uint32), shares[1], tags)
    assert not sound.any()
    with pytest.raises(DataError, match="neither 0 nor 1"):
        open_tagged_flags(shares[0] + np.array(change, dtype=np.uint32), shares[1], tags)


def test_who_knows_the_tag_could():
    """So tags must stay with sensor and owner: this is what they protect against."""
    keys = deal([3], 6, tags=[77])
    shares = [evaluate_tagged(party, keys[party], 16) for party in (0, 1)]
    assert open_tagged_flags(shares[0] + np.array([1, 77], dtype=np.uint32), shares[1], [77]).tolist() == [True]


# What one server sees


def test_masks_are_uniform():
    for score in (0, 31):
        seen = np.bincount(deal(np.full(64_000, score), 6)[0].masked, minlength=64)
        assert abs(seen - 1000).max() < 200


def test_each_deal_is_fresh():
    one, other = deal([5] * 100, 16)[0], deal([5] * 100, 16)[0]
    assert not np.array_equal(one.roots, other.roots)
    assert not np.array_equal(one.masked, other.masked)
    assert len(np.unique(one.roots)) == 200


def test_shares_alone_look_alike():
    """The low byte of one server's share, for both outcomes."""
    low, high = (deal(np.full(50_000, score), 8)[1] for score in (0, 127))
    counts = [np.bincount(evaluate(1, keys, 64) & 255, minlength=256) for keys in (low, high)]
    for seen in counts:
        assert abs(seen - 50_000 / 256).max() < 6 * (50_000 / 256) ** 0.5


# Refusals


@pytest.mark.parametrize("values", [[-1], [32], [0.5], [[1, 2]], [True]])
def test_scores_outside_their_domain_are_refused_without_showing_them(values):
    with pytest.raises(DataError, match="0 to 31"):
        deal(values, 6)


@pytest.mark.parametrize("bits", [1, 33, 6.0, True, "6"])
def test_bits_outside_their_range(bits):
    with pytest.raises(ParameterError, match="bits"):
        deal([0], bits)


@pytest.mark.parametrize("tags", [[0], [2**32], [1, 2]])
def test_tags_outside_their_range(tags):
    with pytest.raises(DataError, match="tags"):
        deal([3], 6, tags=tags)


@pytest.mark.parametrize("threshold", [-1, 33, 1.5, True])
def test_thresholds_outside_the_domain(threshold):
    with pytest.raises(ParameterError, match="0 to 32"):
        evaluate(0, deal([3], 6)[0], threshold)


def test_other_refusals():
    keys = deal([3], 6)
    with pytest.raises(ParameterError, match="party"):
        evaluate(2, keys[0], 3)
    with pytest.raises(ParameterError, match="no tags"):
        evaluate_tagged(0, keys[0], 3)
    share = evaluate(0, keys[0], 3)
    for wrong in (share.astype(np.int64), share[:, None], [1]):
        with pytest.raises(DataError, match="32-bit numbers"):
            open_flags(wrong, share)
    with pytest.raises(DataError, match="as many"):
        open_flags(share, np.zeros(2, dtype=np.uint32))
    pair = np.zeros((2, 2), dtype=np.uint32)
    with pytest.raises(DataError, match="tag of each"):
        open_tagged_flags(pair, pair, [1])


def test_100_000_readings_take_no_longer_than_they_may():
    scores = system_noise().words(100_000) % 2**15
    deal(scores[:3000], 16)
    start = time.process_time()
    keys = deal(scores, 16)
    dealt_in = time.process_time() - start
    shares = evaluate(0, keys[0], 9000), evaluate(1, keys[1], 9000)
    start = time.process_time()
    evaluate(0, keys[0], 10_000)
    assert time.process_time() - start < 0.15
    assert dealt_in < 0.8
    assert np.array_equal(open_flags(*shares), scores >= 9000)
