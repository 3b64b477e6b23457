/* How many of a user's targets are below each score, found for many scores at a time.

   Scores and targets are rounded to keys of 16 bits, so that a higher score never has a lower key: a score must be compared
   only with the targets that have its key, and few scores have the key of a target. The others are searched for among the
   keys of the targets, the rungs of a ladder, in steps that halve them. A step looks its rungs up in registers, by
   instructions for which vector types have no operation. Pairs of positions are counted, since a count must be
   stored before it can grow again. */

#ifndef LADDER_H
#define LADDER_H

#include "counting.h"

enum {
    STEPS = 6,
    RUNGS = 1 << STEPS, /* more than the targets of a user whose scores are searched for */
};

#if defined(__AVX2__)

enum {
    KEYS = VECTOR_BYTES / 2,
    STRIDE = 2 * KEYS, /* scores that are searched for at a time; the length of a row of scores is a multiple of it */
    NO_TARGET = 32767, /* above the key of any score */
    LOWEST_KEY = -NO_TARGET + 1, HIGHEST_KEY = NO_TARGET - 2, /* of targets; other scores may have keys beyond them */
};

typedef int16_t keys __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t codes __attribute__((vector_size(VECTOR_BYTES)));

/* The code of a position has a bit for each step, the first one lowest, that tells whether the score was not above the
   rung. The rungs of a step are in the order of the codes so far. */
typedef struct {
    number lowest, per_unit;
    int64_t size;
    int16_t rungs[RUNGS]; /* keys of the targets, ascending, then NO_TARGET */
    int16_t steps[STEPS][RUNGS / 2];
    uint32_t pairs[RUNGS * RUNGS]; /* counts of scores, by the codes of two of them */
} Ladder;

#if defined(__AVX512BW__)
typedef __m512i raw;
#define INTRINSIC(name) _mm512_##name
#define FIRST_HALF _mm512_castsi512_si256
#define AS_FIRST_HALF _mm512_castsi256_si512
#define JOIN(low, high) _mm512_inserti64x4(low, FIRST_HALF(high), 1)
enum { BITS_PER_KEY = 1 };

/* Return the codes of keys, and as bits in `hits` those that a target has. */
INLINE codes search(const Ladder *ladder, keys key, uint64_t *hits) {
    raw rung = _mm512_set1_epi16(ladder->steps[0][0]), code = _mm512_setzero_si512(), last = _mm512_set1_epi16(NO_TARGET);
    UNROLLED for (int step = 0; step < STEPS; step++) {
        if (step)
            rung = _mm512_permutexvar_epi16(code, _mm512_loadu_si512(ladder->steps[step]));
        __mmask32 is_low = _mm512_cmple_epi16_mask((raw)key, rung);
        code = _mm512_mask_add_epi16(code, is_low, code, _mm512_set1_epi16(1 << step));
        last = _mm512_mask_mov_epi16(last, is_low, rung);
    }
    *hits = _mm512_cmpeq_epi16_mask((raw)key, last);
    return (codes)code;
}
#else
typedef __m256i raw;
#define INTRINSIC(name) _mm256_##name
#define FIRST_HALF _mm256_castsi256_si128
#define AS_FIRST_HALF _mm256_castsi128_si256
#define JOIN(low, high) _mm256_inserti128_si256(low, FIRST_HALF(high), 1)
enum { BITS_PER_KEY = 2 };

/* Return one of eight rungs for each place, which is given as those of its two bytes. */
INLINE raw rungs_of_8(const int16_t *rungs, codes places) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)rungs)), (raw)places);
}

INLINE raw either(raw no, raw yes, keys is_yes) {
    return _mm256_blendv_epi8(no, yes, (raw)is_yes);
}

/* Return the rungs of a step; the upper bits of a place are given as the results of the last two comparisons. */
INLINE keys rungs_of(const int16_t *rungs, int step, codes places, keys last, keys before) {
    if (step <= 3)
        return (keys)rungs_of_8(rungs, places);
    keys upper = step == 4 ? last : before;
    raw low = either(rungs_of_8(rungs, places), rungs_of_8(rungs + 8, places), upper);
    if (step == 4)
        return (keys)low;
    return (keys)either(low, either(rungs_of_8(rungs + 16, places), rungs_of_8(rungs + 24, places), upper), last);
}

INLINE codes search(const Ladder *ladder, keys key, uint64_t *hits) {
    keys rung = ladder->steps[0][0] - (keys){0}, last = {0}, before = {0}, is_equal = {0};
    codes places = 0x0100 - (codes){0};
    UNROLLED for (int step = 0; step < STEPS; step++) {
        if (step)
            rung = rungs_of(ladder->steps[step], step, places, last, before);
        before = last;
        last = key <= rung;
        places |= (codes)last & (uint16_t)(0x0202 << step);
        is_equal |= key == rung;
    }
    *hits = (uint32_t)_mm256_movemask_epi8((raw)is_equal) & 0x55555555;
    return places >> 1 & (RUNGS - 1);
}
#endif

/* Return scores as whole numbers of 32 bits, in the first half of a register if numbers are wider. What is not a number
   becomes the lowest one: it comes second, and a minimum of it is itself. */
INLINE raw rounded_vector(const Ladder *ladder, const number *scores) {
    vector place = (load(scores) - splat(ladder->lowest)) * splat(ladder->per_unit) + splat(LOWEST_KEY);
#if NUMBER_BITS == 32
    return INTRINSIC(cvtps_epi32)(INTRINSIC(min_ps)(INTRINSIC(set1_ps)(NO_TARGET - 1), place));
#else
    return AS_FIRST_HALF(INTRINSIC(cvtpd_epi32)(INTRINSIC(min_pd)(INTRINSIC(set1_pd)(NO_TARGET - 1), place)));
#endif
}

INLINE raw rounded(const Ladder *ladder, const number *scores) {
    raw first = rounded_vector(ladder, scores);
    return NUMBER_BITS == 32 ? first : JOIN(first, rounded_vector(ladder, scores + LANES));
}

INLINE keys keys_of(const Ladder *ladder, const number *scores) {
    return (keys)INTRINSIC(packs_epi32)(rounded(ladder, scores), rounded(ladder, scores + KEYS / 2));
}

/* Return which score a key is of: registers are packed in parts of 128 bits. */
INLINE int score_of(int lane) {
    return lane / 8 * 4 + lane / 4 % 2 * (KEYS / 2) + lane % 4;
}

/* Return how many rungs are below the scores with a code, after so many steps. */
INLINE int position_of(int code, int steps) {
    int position = 0;
    for (int step = 0; step < steps; step++)
        position += code >> step & 1 ? 0 : RUNGS >> (step + 1);
    return position;
}

static void set_rungs(Ladder *ladder, const number *targets) {
    number ascending[RUNGS];
    for (int64_t i = 0; i < RUNGS; i++)
        ascending[i] = targets[most(ladder->size - 1 - i, 0)];
    for (int64_t i = 0; i < RUNGS; i += KEYS) {
        keys key = keys_of(ladder, ascending + i);
        for (int lane = 0; lane < KEYS; lane++)
            ladder->rungs[i + score_of(lane)] = key[lane];
    }
    for (int64_t i = ladder->size; i < RUNGS; i++)
        ladder->rungs[i] = NO_TARGET;
    for (int step = 0; step < STEPS; step++)
        for (int code = 0; code < 1 << step; code++)
            ladder->steps[step][code] = ladder->rungs[position_of(code, step) + (RUNGS >> (step + 1)) - 1];
}

/* Return whether few scores have the key of a target, to judge by a few of them from all over the row. */
static int are_few_hits(const Ladder *ladder, const number *row, int64_t n_items) {
    enum { SAMPLED = 8 };
    int64_t found = 0;
    for (int64_t i = 0; i < SAMPLED; i++) {
        uint64_t hits;
        search(ladder, keys_of(ladder, row + i * (n_items / SAMPLED / KEYS) * KEYS), &hits);
        found += __builtin_popcountll(hits);
    }
    return found * 16 <= SAMPLED * KEYS;
}

/* Set the ladder of targets, which descend; return whether a row is best counted by it. */
static __attribute__((noinline)) int set_ladder(
    Ladder *ladder, const number *targets, int64_t size, const number *row, int64_t n_items) {
    if (size >= RUNGS || n_items < RUNGS * RUNGS)
        return 0;
    ladder->size = size;
    ladder->lowest = targets[size - 1];
    ladder->per_unit = (HIGHEST_KEY - LOWEST_KEY) / (targets[0] - targets[size - 1]);
    if (!(ladder->per_unit > 0 && isfinite(ladder->per_unit)))
        return 0;
    set_rungs(ladder, targets);
    memset(ladder->pairs, 0, sizeof ladder->pairs);
    return are_few_hits(ladder, row, n_items);
}

/* Compare scores with the targets that have their keys. */
static __attribute__((noinline)) void count_hits(
    const Ladder *ladder, uint64_t hits, const int16_t *key, const number *scores, const number *targets,
    int64_t *above, int64_t *tied) {
    for (; hits; hits &= hits - 1) {
        int lane = __builtin_ctzll(hits) / BITS_PER_KEY;
        number score = scores[score_of(lane)];
        int64_t i = 0;
        while (ladder->rungs[i] < key[lane])
            i++;
        for (; ladder->rungs[i] == key[lane]; i++) {
            int64_t t = ladder->size - 1 - i;
            above[t] += score > targets[t];
            tied[t] += score == targets[t];
        }
    }
}

/* Count scores, at most CHUNK, by their positions, and those with the key of a target also for the targets with it. */
static void climb(
    Ladder *ladder, number *scores, int64_t stop, const number *targets, int64_t *above, int64_t *tied) {
    uint16_t pairs[(CHUNK + STRIDE) / 2];
    while (stop % STRIDE)
        scores[stop++] = NAN;
    for (int64_t j = 0; j < stop; j += STRIDE) {
        keys key[2] = {keys_of(ladder, scores + j), keys_of(ladder, scores + j + KEYS)};
        uint64_t hits[2];
        codes pair = search(ladder, key[0], hits);
        pair |= search(ladder, key[1], hits + 1) << STEPS;
        memcpy(pairs + j / 2, &pair, sizeof pair);
        if (hits[0] | hits[1]) {
            int16_t own[2][KEYS];
            memcpy(own, key, sizeof own);
            for (int half = 0; half < 2; half++)
                count_hits(ladder, hits[half], own[half], scores + j + half * KEYS, targets, above, tied);
        }
    }
    for (int64_t p = 0; p < stop / 2; p += KEYS)
        UNROLLED for (int k = 0; k < KEYS; k++)
            ladder->pairs[pairs[p + k]]++;
}

/* Add to each target the scores at higher positions. */
static void add_ladder(const Ladder *ladder, int64_t *above) {
    int64_t at[RUNGS] = {0}, total = 0;
    for (int second = 0; second < RUNGS; second++)
        for (int first = 0; first < RUNGS; first++) {
            uint32_t found = ladder->pairs[second * RUNGS + first];
            at[first] += found;
            at[second] += found;
        }
    int64_t higher[RUNGS];
    for (int code = 0; code < RUNGS; code++)
        higher[position_of(code, STEPS)] = at[code];
    for (int64_t t = 0; t < ladder->size; t++) {
        total += higher[ladder->size - t];
        above[t] += total;
    }
}

#else /* no instruction looks up words by other words */
enum { STRIDE = LANES };

typedef struct {
    int64_t size;
} Ladder;

INLINE int set_ladder(Ladder *ladder, const number *targets, int64_t size, const number *row, int64_t n_items) {
    (void)ladder, (void)targets, (void)size, (void)row, (void)n_items;
    return 0;
}

INLINE void climb(
    Ladder *ladder, number *scores, int64_t stop, const number *targets, int64_t *above, int64_t *tied) {
    (void)ladder, (void)scores, (void)stop, (void)targets, (void)above, (void)tied;
}

INLINE void add_ladder(const Ladder *ladder, int64_t *above) {
    (void)ladder, (void)above;
}
#endif

#endif
