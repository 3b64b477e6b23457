/* How many of a user's targets are below each score, found for many scores at a time.

   Scores and targets are rounded to keys of 16 bits, so that a higher score never has a lower key: a score must be compared
   only with the targets that have its key, and few scores have the key of a target. The others are searched for among the
   keys of the targets, the rungs of a ladder, in steps that halve them. A step looks its rungs up in registers, by
   instructions for which vector types have no operation, for several registers of keys in turn: each has to wait for its own
   last step. Positions are counted by comparing them with each of them, which takes no longer than counting in memory. */

#ifndef LADDER_H
#define LADDER_H

#include "counting.h"

enum {
    AHEAD = 4096, /* numbers; memory delivers these while others are counted */
    FEWEST_SEARCHED = 2048, /* scores of a row, or else it takes longer to set a ladder up */
    SLICE = 1024, /* scores that are counted at a time: what is found of them stays in the first-level cache */
    LEAST_STEPS = 4, STEPS = 6,
    RUNGS = 1 << STEPS, /* more than the targets of a user whose scores are searched for */
};

#if defined(__AVX2__)

enum {
    KEYS = VECTOR_BYTES / 2,
    TOGETHER = 10, /* codes that are counted at a time */
    SEARCHES = 4, /* registers of keys that are searched for in turn */
    STRIDE = SEARCHES * KEYS, /* the length of a row of scores is a multiple of it */
    NO_TARGET = 32767, /* above the key of any score */
    LOWEST_KEY = -NO_TARGET + 1, HIGHEST_KEY = NO_TARGET - 2, /* of targets; other scores may have keys beyond them */
};

typedef int16_t keys __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t codes __attribute__((vector_size(VECTOR_BYTES)));
typedef uint8_t octets __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t longs __attribute__((vector_size(VECTOR_BYTES)));

/* The code of a position has a bit for each step, the first one lowest, that tells whether the score was above the
   rung. The rungs of a step are in the order of the codes so far. */
typedef struct {
    number lowest, per_unit;
    int64_t size;
    int n_steps;
    int16_t rungs[RUNGS]; /* keys of the targets, ascending, then NO_TARGET */
    int16_t steps[STEPS][RUNGS / 2];
    uint8_t code_at[RUNGS + TOGETHER]; /* the codes of positions, as they are counted */
    longs at[RUNGS + TOGETHER]; /* counts of scores by their positions, in parts */
} Ladder;

/* For a register of keys: whether they are above the rung of a step, and where to look for that of the next one. */
#if defined(__AVX512BW__)
typedef __m512i raw;
typedef __mmask32 flags;
#define INTRINSIC(name) _mm512_##name
#define FIRST_HALF _mm512_castsi512_si256
#define AS_FIRST_HALF _mm512_castsi256_si512
#define JOIN(low, high) _mm512_inserti64x4(low, FIRST_HALF(high), 1)
enum { NO_PLACE = 0, PLACE = 1, BITS_PER_KEY = 1 };

INLINE flags is_above(keys key, keys rung) {
    return _mm512_cmpgt_epi16_mask((raw)key, (raw)rung);
}

INLINE flags is_equal(keys a, keys b) {
    return _mm512_cmpeq_epi16_mask((raw)a, (raw)b);
}

INLINE uint32_t bits_of(flags hits) {
    return hits;
}

INLINE keys either(keys no, keys yes, flags is_yes) {
    return (keys)_mm512_mask_mov_epi16((raw)no, is_yes, (raw)yes);
}

INLINE codes add_step(codes places, flags above, int step) {
    return (codes)_mm512_mask_add_epi16((raw)places, above, (raw)places, _mm512_set1_epi16(PLACE << step));
}

/* Return two codes for each word. */
INLINE octets join(codes low, codes high) {
    return (octets)(low | high << 8);
}

INLINE uint8_t octet_of(int code) {
    return (uint8_t)code;
}

INLINE keys rungs_of(const int16_t *rungs, int step, codes places, const flags *above) {
    (void)step, (void)above;
    return (keys)_mm512_permutexvar_epi16((raw)places, _mm512_loadu_si512(rungs));
}
#else
typedef __m256i raw;
typedef keys flags;
#define INTRINSIC(name) _mm256_##name
#define FIRST_HALF _mm256_castsi256_si128
#define AS_FIRST_HALF _mm256_castsi128_si256
#define JOIN(low, high) _mm256_inserti128_si256(low, FIRST_HALF(high), 1)
enum { NO_PLACE = 0x0100, PLACE = 0x0202, BITS_PER_KEY = 2 }; /* both bytes of a rung are looked up */

INLINE flags is_above(keys key, keys rung) {
    return key > rung;
}

INLINE flags is_equal(keys a, keys b) {
    return a == b;
}

INLINE uint32_t bits_of(flags hits) {
    return (uint32_t)_mm256_movemask_epi8((raw)hits) & 0x55555555;
}

INLINE keys either(keys no, keys yes, flags is_yes) {
    return (keys)_mm256_blendv_epi8((raw)no, (raw)yes, (raw)is_yes);
}

INLINE codes add_step(codes places, flags above, int step) {
    return places | ((codes)above & (uint16_t)(PLACE << step));
}

/* Return two codes for each word. */
INLINE octets join(codes low, codes high) {
    return (octets)_mm256_blendv_epi8((raw)low, (raw)high, _mm256_set1_epi16(-256)) | 1;
}

INLINE uint8_t octet_of(int code) {
    return (uint8_t)(2 * code + 1);
}

/* Return one of eight rungs for each place. */
INLINE keys rungs_of_8(const int16_t *rungs, codes places) {
    raw both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)rungs));
    return (keys)_mm256_shuffle_epi8(both, (raw)places);
}

/* Return the rungs of a step; of a place only three bits are looked up, and the others chosen by. */
INLINE keys rungs_of(const int16_t *rungs, int step, codes places, const flags *above) {
    if (step <= 3)
        return rungs_of_8(rungs, places);
    keys low = either(rungs_of_8(rungs, places), rungs_of_8(rungs + 8, places), above[3]);
    if (step == 4)
        return low;
    return either(low, either(rungs_of_8(rungs + 16, places), rungs_of_8(rungs + 24, places), above[3]), above[4]);
}
#endif

/* Return scores as whole numbers of 32 bits, in the first half of a register if numbers are wider, and note whether any
   may not be finite. What is not a number becomes the lowest one: it comes second, and a minimum of it is itself. */
INLINE raw rounded_vector(const Ladder *ladder, const number *scores, wholes *bad) {
    vector place = (load(scores) - splat(ladder->lowest)) * splat(ladder->per_unit) + splat(LOWEST_KEY);
    *bad |= (wholes)(place - place); /* NaN for infinities and NaN, and else 0 */
#if NUMBER_BITS == 32
    return INTRINSIC(cvtps_epi32)(INTRINSIC(min_ps)(INTRINSIC(set1_ps)(NO_TARGET - 1), place));
#else
    return AS_FIRST_HALF(INTRINSIC(cvtpd_epi32)(INTRINSIC(min_pd)(INTRINSIC(set1_pd)(NO_TARGET - 1), place)));
#endif
}

INLINE raw rounded(const Ladder *ladder, const number *scores, wholes *bad) {
    raw first = rounded_vector(ladder, scores, bad);
    return NUMBER_BITS == 32 ? first : JOIN(first, rounded_vector(ladder, scores + LANES, bad));
}

/* Write the keys of scores, so many that they fill registers; return whether all scores are surely finite. */
INLINE int write_keys(const Ladder *ladder, const number *scores, int64_t size, int16_t *out) {
    wholes bad = {0};
    for (int64_t j = 0; j < size; j += KEYS) {
        raw low = rounded(ladder, scores + j, &bad), high = rounded(ladder, scores + j + KEYS / 2, &bad);
        raw key = INTRINSIC(packs_epi32)(low, high);
        memcpy(out + j, &key, sizeof key);
    }
    return !is_any(bad);
}

/* Return which of the scores of a register a key is of: these are packed in parts of 128 bits. */
INLINE int64_t score_of(int64_t place) {
    int64_t lane = place % KEYS;
    return place - lane + lane / 8 * 4 + lane / 4 % 2 * (KEYS / 2) + lane % 4;
}

/* Return how many rungs are below the scores with a code, after `steps` of all steps. */
INLINE int position_of(int code, int steps, int n_steps) {
    int position = 0;
    for (int step = 0; step < steps; step++)
        position += (code >> step & 1) << (n_steps - step - 1);
    return position;
}

static void set_rungs(Ladder *ladder, const number *targets) {
    memset(ladder->code_at, UINT8_MAX, sizeof ladder->code_at); /* no code */
    for (int code = 0; code < 1 << ladder->n_steps; code++)
        ladder->code_at[position_of(code, ladder->n_steps, ladder->n_steps)] = octet_of(code);
    number ascending[RUNGS];
    int16_t packed[RUNGS];
    for (int64_t i = 0; i < RUNGS; i++)
        ascending[i] = targets[most(ladder->size - 1 - i, 0)];
    write_keys(ladder, ascending, RUNGS, packed);
    for (int64_t i = 0; i < RUNGS; i++)
        ladder->rungs[score_of(i)] = score_of(i) < ladder->size ? packed[i] : NO_TARGET;
    for (int step = 0; step < ladder->n_steps; step++)
        for (int code = 0; code < 1 << step; code++) {
            int half = 1 << (ladder->n_steps - step - 1);
            ladder->steps[step][code] = ladder->rungs[position_of(code, step, ladder->n_steps) + half - 1];
        }
}

/* Compare scores with the targets that have their keys. */
static __attribute__((noinline)) void count_hits(
    const Ladder *ladder, const flags *hits, const int16_t *key, const number *scores, const number *targets,
    int64_t *above, int64_t *tied) {
    for (int v = 0; v < SEARCHES; v++)
        for (uint32_t rest = bits_of(hits[v]); rest; rest &= rest - 1) {
            int64_t place = v * KEYS + __builtin_ctz(rest) / BITS_PER_KEY, i = 0;
            number score = scores[score_of(place)];
            while (ladder->rungs[i] < key[place])
                i++;
            for (; i < ladder->size && ladder->rungs[i] == key[place]; i++) {
                int64_t t = ladder->size - 1 - i;
                above[t] += score > targets[t];
                tied[t] += score == targets[t];
            }
        }
}

/* Search for a stride of keys; write their codes, in some order. Return whether there are `hits`, keys that a target has:
   those of the next rung that is not below. */
INLINE int search(int n_steps, const Ladder *ladder, const int16_t *from, uint8_t *code, flags *hits) {
    keys key[SEARCHES], next[SEARCHES];
    codes places[SEARCHES];
    flags above[SEARCHES][STEPS], any = {0};
    memcpy(key, from, sizeof key);
    UNROLLED for (int step = 0; step < n_steps; step++)
        UNROLLED for (int v = 0; v < SEARCHES; v++) {
            places[v] = step ? places[v] : NO_PLACE - (codes){0};
            keys rung = rungs_of(ladder->steps[step], step, places[v], above[v]);
            above[v][step] = is_above(key[v], rung);
            places[v] = add_step(places[v], above[v][step], step);
            next[v] = step ? either(rung, next[v], above[v][step]) : rung;
        }
    UNROLLED for (int v = 0; v < SEARCHES; v += 2) {
        octets both = join(places[v], places[v + 1]);
        memcpy(code + v * KEYS, &both, sizeof both);
    }
    UNROLLED for (int v = 0; v < SEARCHES; v++)
        any |= hits[v] = is_equal(key[v], next[v]);
    return bits_of(any) != 0;
}

/* Count some codes by their positions, except for the lowest one: no target is below its scores. */
static void count_codes(Ladder *ladder, const uint8_t *code, int64_t stop) {
    for (int64_t position = 1; position <= ladder->size; position += TOGETHER) {
        octets found[TOGETHER] = {{0}};
        for (int64_t j = 0; j < stop; j += VECTOR_BYTES) {
            octets some;
            memcpy(&some, code + j, sizeof some);
            UNROLLED for (int i = 0; i < TOGETHER; i++)
                found[i] -= (octets)(some == ladder->code_at[position + i]); /* true is -1 */
        }
        for (int i = 0; i < TOGETHER; i++)
            ladder->at[position + i] += (longs)INTRINSIC(sad_epu8)((raw)found[i], (raw)(octets){0});
    }
}

/* Search as many steps as the ladder has. */
static __attribute__((noinline)) int search_stride(
    const Ladder *ladder, const int16_t *key, uint8_t *code, flags *hits) {
    switch (ladder->n_steps) { /* a constant number of steps keeps all in registers */
    case LEAST_STEPS: return search(LEAST_STEPS, ladder, key, code, hits);
    case LEAST_STEPS + 1: return search(LEAST_STEPS + 1, ladder, key, code, hits);
    default: return search(STEPS, ladder, key, code, hits);
    }
}

/* Count scores, at most SLICE, by their positions, and those with the key of a target also for the targets with it; return
   whether all scores are surely finite. */
static int climb(
    Ladder *ladder, const number *scores, int64_t stop, const number *targets, int64_t *above, int64_t *tied) {
    int16_t key[SLICE];
    uint8_t code[SLICE];
    int is_good = write_keys(ladder, scores, stop, key);
    for (int64_t j = 0; j < stop; j += STRIDE) {
        flags hits[SEARCHES];
        for (int line = 0; line < STRIDE; line += 64 / (int)sizeof(number))
            __builtin_prefetch(scores + AHEAD + j + line);
        if (search_stride(ladder, key + j, code + j, hits))
            count_hits(ladder, hits, key + j, scores + j, targets, above, tied);
    }
    count_codes(ladder, code, stop);
    return is_good;
}

/* Return whether few scores have the key of a target, to judge by a few of them from all over the row. */
static int are_few_hits(const Ladder *ladder, const number *row, int64_t n_items) {
    enum { SAMPLED = 2 };
    int64_t found = 0;
    for (int64_t i = 0; i < SAMPLED; i++) {
        int16_t key[STRIDE];
        uint8_t code[STRIDE];
        flags hits[SEARCHES];
        write_keys(ladder, row + i * (n_items / SAMPLED / STRIDE) * STRIDE, STRIDE, key);
        search_stride(ladder, key, code, hits);
        for (int v = 0; v < SEARCHES; v++)
            found += __builtin_popcount(bits_of(hits[v]));
    }
    return found * 16 <= SAMPLED * STRIDE;
}

/* Set the ladder of targets, which descend; return whether a row is best counted by it. */
static __attribute__((noinline)) int set_ladder(
    Ladder *ladder, const number *targets, int64_t size, const number *row, int64_t n_items) {
    if (size >= RUNGS || n_items < FEWEST_SEARCHED)
        return 0;
    ladder->size = size;
    ladder->n_steps = LEAST_STEPS;
    while (size >= 1 << ladder->n_steps)
        ladder->n_steps++;
    ladder->lowest = targets[size - 1];
    ladder->per_unit = (HIGHEST_KEY - LOWEST_KEY) / (targets[0] - targets[size - 1]);
    if (!(ladder->per_unit > 0 && isfinite(ladder->per_unit)))
        return 0;
    set_rungs(ladder, targets);
    memset(ladder->at, 0, sizeof ladder->at);
    return are_few_hits(ladder, row, n_items);
}

/* Add to each target the scores at higher positions. */
static void add_ladder(const Ladder *ladder, int64_t *above) {
    int64_t total = 0;
    for (int64_t t = 0; t < ladder->size; t++) {
        for (size_t part = 0; part < VECTOR_BYTES / sizeof(int64_t); part++)
            total += ladder->at[ladder->size - t][part];
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

INLINE int climb(
    Ladder *ladder, const number *scores, int64_t stop, const number *targets, int64_t *above, int64_t *tied) {
    (void)ladder, (void)scores, (void)stop, (void)targets, (void)above, (void)tied;
    return 0;
}

INLINE void add_ladder(const Ladder *ladder, int64_t *above) {
    (void)ladder, (void)above;
}
#endif

#endif
