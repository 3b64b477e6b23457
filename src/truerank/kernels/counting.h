/* From a row of scores to counts: items that are not candidates are masked, the others compared with the targets. */

#ifndef COUNTING_H
#define COUNTING_H

#include <math.h>
#include <stdlib.h>

#include "kernels.h"
#include "hits.h"

enum {
    CHUNK = 4096, /* at most so many items are scored before they are counted */
    MANY = 4096 / sizeof(number), /* with this many targets, a binary search per score beats comparing with all */
    GROUP = 4, /* targets that a score is compared with at a time */
    FEW = 48, /* up to this many targets are sorted by insertion */
    BINNED = 256 / sizeof(number), /* from this many targets on, scores are counted in bins */
    BINS = 2048,
    COPIES = 2, /* of the counts in bins, because a count must be stored before it can grow again */
};

typedef struct {
    factor score;
    int64_t index; /* in test.items */
} Target;

INLINE int is_within(const Lists *lists, int64_t user) {
    int64_t begin = lists->begin[user], next = lists->next[user], end = lists->end[user];
    return 0 <= begin && begin <= next && next <= end && end <= lists->size;
}

/* Return whether every span of the block lies in its list. */
static int is_valid(const Block *block) {
    int valid = 1;
    for (int64_t user = 0; user < block->users; user++)
        valid &= is_within(&block->train, user) & is_within(&block->test, user);
    return valid;
}

static void sort_few(Target *targets, int64_t size) {
    for (int64_t i = 1; i < size; i++) {
        Target target = targets[i];
        int64_t at = i;
        for (; at > 0 && targets[at - 1].score < target.score; at--)
            targets[at] = targets[at - 1];
        targets[at] = target;
    }
}

/* Return a whole number that is larger the lower a score is; both zeros give the same. */
INLINE uint64_t descent(factor score) {
#if FACTOR_BITS == 32
    uint32_t bits, sign = 0x80000000;
#else
    uint64_t bits, sign = 0x8000000000000000;
#endif
    score += 0; /* -0 becomes 0 */
    memcpy(&bits, &score, sizeof bits);
    return bits & sign ? bits : ~(bits | sign);
}

/* Sort by one byte of the descent, from `from` to `to`; equal ones keep their order. */
static void sort_by_byte(const Target *from, int64_t size, int shift, Target *to) {
    int64_t starts[257] = {0};
    for (int64_t i = 0; i < size; i++)
        starts[(descent(from[i].score) >> shift & 255) + 1]++;
    for (int byte = 0; byte < 256; byte++)
        starts[byte + 1] += starts[byte];
    for (int64_t i = 0; i < size; i++)
        to[starts[descent(from[i].score) >> shift & 255]++] = from[i];
}

/* Sort so that scores descend, and equal ones keep their order; `spare` has the same length. */
static void sort_targets(Target *targets, int64_t size, Target *spare) {
    if (size <= FEW) {
        sort_few(targets, size);
        return;
    }
    for (int shift = 0; shift < FACTOR_BITS; shift += 16) {
        sort_by_byte(targets, size, shift, spare);
        sort_by_byte(spare, size, shift + 8, targets);
    }
}

/* Return memory for twice the targets of any single user, or NULL. */
static Target *new_targets(const Block *block) {
    int64_t longest = 0;
    for (int64_t user = 0; user < block->users; user++)
        longest = most(longest, block->test.end[user] - block->test.begin[user]);
    return malloc(2 * (longest + 1) * sizeof(Target));
}

/* Sort one user's scored held-out items into the block's targets. */
static void set_targets(Block *block, int64_t user, Target *found) {
    int64_t first = block->test.begin[user], size = block->test.end[user] - first;
    factor *targets = block->targets;
    sort_targets(found, size, found + size);
    for (int64_t i = 0; i < size; i++) {
        targets[first + i] = found[i].score;
        block->order[first + i] = found[i].index;
    }
}

/* Write `value` over the scores of the listed items in low..high - 1; return where to continue in the list.

   In a list that does not ascend this stops advancing, which the caller notices. */
static int64_t overwrite(
    number value, number *scores, int64_t low, int64_t high, const int32_t *items, int64_t next, int64_t end) {
    for (; next < end; next++) {
        uint64_t column = (uint64_t)((int64_t)items[next] - low);
        if (column >= (uint64_t)(high - low))
            break;
        scores[column] = value;
    }
    return next;
}

/* Do the same with NaN for held-out items, after the training items: an item that is already NaN is one of these. */
static int64_t overwrite_held_out(
    uint8_t *seen, number *scores, int64_t low, int64_t high, const int32_t *items, int64_t next, int64_t end) {
    for (; next < end; next++) {
        uint64_t column = (uint64_t)((int64_t)items[next] - low);
        if (column >= (uint64_t)(high - low))
            break;
        seen[next] = isnan(scores[column]);
        scores[column] = NAN;
    }
    return next;
}

/* Write NaN up to a whole vector; return its end. */
static int64_t fill(number *scores, int64_t stop) {
    while (stop % LANES)
        scores[stop++] = NAN;
    return stop;
}

/* Write NaN over one user's items in low..high - 1 that are not counted, and up to a whole vector; return its end. */
static int64_t mask(Block *block, int64_t user, number *scores, int64_t low, int64_t high) {
    Lists *train = &block->train, *test = &block->test;
    train->next[user] = overwrite(NAN, scores, low, high, train->items, train->next[user], train->end[user]);
    test->next[user] =
        overwrite_held_out(block->seen, scores, low, high, test->items, test->next[user], test->end[user]);
    return fill(scores, high - low);
}

/* Count, for `size` pairs of bounds, the scores above `highs` and those in lows..highs.

   Only with factors in more precision than the scores do the two differ; equal ones take fewer registers. */
INLINE void compare(
    int size, const number *scores, int64_t stop, const number *highs, const number *lows, int64_t *above,
    int64_t *between) {
    tally over[GROUP] = {0}, from[GROUP] = {0};
    TWICE for (int64_t j = 0; j < stop; j += LANES) {
        vector score = load(scores + j);
        UNROLLED for (int g = 0; g < size; g++) {
            over[g] = add_hits(over[g], score > splat(highs[g]));
            from[g] = add_hits(from[g], score >= splat(FACTOR_BITS == NUMBER_BITS ? highs[g] : lows[g]));
        }
    }
    UNROLLED for (int g = 0; g < size; g++) {
        above[g] += total(over[g]);
        between[g] += total(from[g]) - total(over[g]);
    }
}

static void compare_group(
    int64_t size, const number *scores, int64_t stop, const number *highs, const number *lows, int64_t *above,
    int64_t *between) {
    switch (size) { /* a constant size keeps bounds and counts in registers */
    case 1: compare(1, scores, stop, highs, lows, above, between); break;
    case 2: compare(2, scores, stop, highs, lows, above, between); break;
    case 3: compare(3, scores, stop, highs, lows, above, between); break;
    default: compare(GROUP, scores, stop, highs, lows, above, between);
    }
}

/* Copy the scores that are not below `bound`, and maybe others, to `kept`, which may be the same place; return the end. */
static int64_t keep(const number *scores, int64_t stop, number bound, number *kept) {
    int64_t size = 0;
    for (int64_t j = 0; j < stop; j += LANES) {
        vector score = load(scores + j);
        size += keep_hits(kept + size, score, score >= splat(bound));
    }
    return fill(kept, size);
}

/* Return whether comparing scores with `size` bounds takes longer than first dropping those below `bound`, to judge by a
   few vectors from all over them. */
static int is_worth_keeping(const number *scores, int64_t stop, number bound, int64_t size) {
    enum { SAMPLED = 8 };
    int64_t vectors = stop / LANES, high = 0;
    if (size < 2) /* a single bound costs no more than this */
        return 0;
    if (vectors < SAMPLED)
        return 1;
    for (int64_t i = 0; i < SAMPLED; i++)
        high -= sum(load(scores + i * vectors / SAMPLED * LANES) >= splat(bound)); /* true is -1 */
    return (SAMPLED * LANES - high) * size > SAMPLED * LANES * KEEP_COST;
}

/* Do as `compare` for any number of bounds, which descend.

   The lowest group comes first. A score below all of its bounds is below all others too, so only the rest is
   compared with the next group; in a good model, most items are below most held-out ones. */
static void count_between(
    const number *scores, int64_t stop, const number *highs, const number *lows, int64_t size, int64_t *above,
    int64_t *between) {
    number kept[CHUNK + PANEL];
    while (size > 0) {
        int64_t first = most(size - GROUP, 0);
        if (is_worth_keeping(scores, stop, lows[size - 1], size)) {
            stop = keep(scores, stop, lows[size - 1], kept);
            scores = kept;
        }
        compare_group(size - first, scores, stop, highs + first, lows + first, above + first, between + first);
        size = first;
    }
}

typedef int32_t bins __attribute__((vector_size(LANES * sizeof(int32_t))));

/* Bins of equal width from a user's lowest target to the highest; the first bin is for scores below all of them. A higher
   score is never in a lower bin, so a score must be compared only with the targets in its own bin. */
typedef struct {
    number lowest, per_unit;
    int32_t of_targets[MANY + LANES];
    int16_t sizes[BINS], firsts[BINS]; /* the targets in each bin */
    uint8_t has_target[BINS];
    uint32_t counts[COPIES][BINS]; /* of scores */
} Bins;

/* Return the bins of scores; the first for what is not a number. */
INLINE bins bins_of(const Bins *all, vector score) {
    vector place = (score - splat(all->lowest)) * splat(all->per_unit) + splat(1), top = splat(BINS - 1);
    wholes is_beyond = place > top;
    place = (vector)((wholes)place & (place > splat(0)));
    return __builtin_convertvector((vector)(((wholes)top & is_beyond) | ((wholes)place & ~is_beyond)), bins);
}

/* Find the bins of the targets, which descend, and empty them; return whether there are such bins. */
static __attribute__((noinline)) int set_bins(Bins *all, const number *targets, int64_t size) {
    all->lowest = targets[size - 1];
    all->per_unit = (BINS - 2) / (targets[0] - targets[size - 1]);
    if (!(all->per_unit > 0 && isfinite(all->per_unit)))
        return 0;
    memset(all->counts, 0, sizeof all->counts);
    memset(all->sizes, 0, sizeof all->sizes);
    memset(all->has_target, 0, sizeof all->has_target);
    for (int64_t t = 0; t < size; t += LANES) {
        number some[LANES];
        for (int lane = 0; lane < LANES; lane++)
            some[lane] = targets[least(t + lane, size - 1)];
        bins found = bins_of(all, load(some));
        memcpy(all->of_targets + t, &found, sizeof found);
    }
    for (int64_t t = size - 1; t >= 0; t--) {
        int32_t bin = all->of_targets[t];
        all->firsts[bin] = (int16_t)t;
        all->has_target[bin] = 1;
        all->sizes[bin]++;
    }
    return 1;
}

/* Return whether few scores share a bin with many targets, to judge by a few vectors from all over them. */
static __attribute__((noinline)) int are_few_close(const Bins *all, const number *scores, int64_t stop, int64_t size) {
    enum { SAMPLED = 8 };
    int64_t vectors = stop / LANES, close = 0;
    for (int64_t i = 0; i < SAMPLED; i++) {
        bins found = bins_of(all, load(scores + i * vectors / SAMPLED * LANES));
        for (int lane = 0; lane < LANES; lane++)
            close += all->sizes[found[lane]];
    }
    return close * 16 <= size * SAMPLED * LANES;
}

/* Compare a score with the targets in its bin. */
INLINE void count_close(const Bins *all, number score, const number *targets, int64_t *above, int64_t *tied) {
    number place = (score - all->lowest) * all->per_unit + 1;
    int32_t bin = place > BINS - 1 ? BINS - 1 : (int32_t)place; /* not the first bin, which has no target */
    for (int64_t t = all->firsts[bin]; t < all->firsts[bin] + all->sizes[bin]; t++) {
        above[t] += score > targets[t];
        tied[t] += score == targets[t];
    }
}

/* Count scores, at most CHUNK, in their bins, and those in a bin with a target also for the targets there. */
static void fill_bins(
    Bins *all, const number *scores, int64_t stop, const number *targets, int64_t *above, int64_t *tied) {
    uint16_t close[CHUNK + PANEL];
    int64_t size = 0;
    for (int64_t j = 0; j < stop; j += LANES) {
        bins found = bins_of(all, load(scores + j));
        uint32_t numbers[LANES];
        memcpy(numbers, &found, sizeof numbers);
        UNROLLED for (int lane = 0; lane < LANES; lane++) {
            all->counts[lane % COPIES][numbers[lane]]++;
            close[size] = (uint16_t)(j + lane);
            size += all->has_target[numbers[lane]];
        }
    }
    for (int64_t i = 0; i < size; i++)
        count_close(all, scores[close[i]], targets, above, tied);
}

/* Add to each target the scores in higher bins. */
static void add_bins(const Bins *all, int64_t size, int64_t *above) {
    int64_t total = 0, bin = BINS - 1;
    for (int64_t t = 0; t < size; t++) {
        for (; bin > all->of_targets[t]; bin--)
            for (int copy = 0; copy < COPIES; copy++)
                total += all->counts[copy][bin];
        above[t] += total;
    }
}

/* Do as `count_between` for many targets. */
static void count_in_bins(
    const number *scores, int64_t stop, const number *targets, int64_t size, int64_t *above, int64_t *tied) {
    Bins all;
    if (stop < BINS || !set_bins(&all, targets, size) || !are_few_close(&all, scores, stop, size)) {
        count_between(scores, stop, targets, targets, size, above, tied);
        return;
    }
    fill_bins(&all, scores, stop, targets, above, tied);
    add_bins(&all, size, above);
}

/* Return how many of the targets, which descend, are not below the score. */
INLINE int64_t position_among(const number *targets, int64_t size, number score) {
    int64_t low = 0;
    while (size > 0) {
        int64_t half = size / 2;
        int is_low = score > targets[low + half];
        low = is_low ? low : low + half + 1;
        size = is_low ? half : size - half - 1;
    }
    return low;
}

/* Count each score at its position among the targets; `complete_many` turns this into the final counts. */
static void count_many(
    const number *scores, int64_t stop, const number *targets, int64_t size, int64_t *above, int64_t *tied) {
    for (int64_t j = 0; j < stop; j++) {
        if (isnan(scores[j]))
            continue;
        int64_t position = position_among(targets, size, scores[j]);
        if (position < size)
            above[position]++;
        if (position > 0)
            tied[position - 1] += targets[position - 1] == scores[j];
    }
}

/* A score is above all targets from its position on, and ties with all equal ones. */
static void complete_many(const number *targets, int64_t size, int64_t *above, int64_t *tied) {
    for (int64_t t = 1; t < size; t++)
        above[t] += above[t - 1];
    for (int64_t t = size - 2; t >= 0; t--)
        tied[t] = targets[t] == targets[t + 1] ? tied[t + 1] : tied[t];
}

/* Count one user's masked scores. */
static void count(Block *block, int64_t user, const number *scores, int64_t stop) {
    int64_t first = block->test.begin[user], size = block->test.end[user] - first;
    const number *targets = (const number *)block->targets + first;
    int64_t *above = block->above + first, *tied = block->tied + first;
    if (size < BINNED)
        count_between(scores, stop, targets, targets, size, above, tied);
    else if (size < MANY)
        count_in_bins(scores, stop, targets, size, above, tied);
    else
        count_many(scores, stop, targets, size, above, tied);
}

/* Complete the counts after the last item. */
static void complete(Block *block) {
    for (int64_t user = 0; user < block->users; user++) {
        int64_t first = block->test.begin[user], size = block->test.end[user] - first;
        if (size >= MANY)
            complete_many(
                (const number *)block->targets + first, size, block->above + first, block->tied + first);
    }
}

#endif
