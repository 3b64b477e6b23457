/* The items near the top of each user's list, sifted by keys from factors of 8 bits.

   What matters is above a bound: the lowest held-out item that is still among the first `depth`, or the k-th best item
   so far. Few items are, or are too close to tell by their keys; the score of each of these is computed. So counts
   and lists are exactly those of the float32 scores. If many pass, the loop gives up. Processors without products of
   8 bits use 16. */

#include "kernels.h"

#if defined(__SSE2__)
#if defined(__AVX2__)
#define ROUNDED_BITS 8
#else
#define ROUNDED_BITS 16
#endif
#include "keys.h"

#include "best.h"

enum {
    FREE = 16,  /* scores per user that are always computed, besides some for each place of the depth */
    EACH = 3,   /* so many */
    SHARE = 40, /* beyond these, at most one score in so many keys */
    STRIP = 4 * KEYS, /* keys that are searched together */
    LEAST_FIRST = 1024, FIRST_PER_DEPTH = 32, /* places counted before the sieve, where many items are above a target */
};

/* What the scores of a user that pass are used for: counts, or lists if there is a search. */
typedef struct {
    Keyed all;
    Search *search;
    Best *best;
} Sieve;

/* Return how many keys are above a bound. */
static int64_t count_above(const int16_t *row, int64_t stop, int16_t bound) {
    keys counts = {0}; /* at most CHUNK / KEYS each */
    for (int64_t j = 0; j < stop; j += KEYS)
        counts -= load_keys(row + j) > bound - (keys){0};
    return sum_keys(counts);
}

/* Compare the scores of the items that wait with the targets that they reach. */
static void count_waiting(const Keyed *all, int64_t user, const number *scores) {
    const Block *block = all->top.block;
    const number *targets = block->targets;
    int64_t first = block->test.begin[user];
    for (int64_t i = 0; i < all->n_waiting; i++)
        for (int64_t t = first + all->top.open[user] - 1; t >= first && scores[i] >= targets[t]; t--) {
            block->above[t] += scores[i] > targets[t];
            block->tied[t] += scores[i] == targets[t];
        }
}

/* Collect those of the items that wait that may be among the best. */
static void collect_waiting(const Keyed *all, Search *search, number *scores) {
    int64_t size = all->n_waiting;
    for (int64_t i = 0; i < size; i++)
        search->numbers[i] = (whole)all->waiting[i];
    for (int64_t i = size; i % PANEL; i++)
        scores[i] = NAN;
    for (int64_t start = 0; start < size; start += PANEL)
        collect(search, scores, start);
}

/* Compute the scores of the items that wait for it, and use them. */
static void score_waiting(Sieve *sieve, int64_t user) {
    Keyed *all = &sieve->all;
    const Top *top = &all->top;
    number scores[CHAINS + PANEL];
    score_some(top->users, user, top->items, top->bias, all->waiting, all->n_waiting, scores);
    if (sieve->search)
        collect_waiting(all, sieve->search, scores);
    else
        count_waiting(all, user, scores);
    all->n_close += all->n_waiting;
    all->n_waiting = 0;
}

/* Return where the first strip from `start` on begins that has a key above a bound; a shorter one at the end may have none. */
static __attribute__((noinline)) int64_t find_strip(const int16_t *row, int64_t start, int64_t stop, int16_t bound) {
    for (; start + STRIP <= stop; start += STRIP) {
        keys hits = {0};
        UNROLLED for (int64_t j = start; j < start + STRIP; j += KEYS)
            hits |= load_keys(row + j) > bound - (keys){0};
        if (bits_of(hits))
            break;
    }
    return start;
}

/* Score the items from place `low` on whose keys are above a bound, CHAINS at a time, the first of them from `start` on. */
static __attribute__((noinline)) void pass(
    Sieve *sieve, int64_t user, const int16_t *row, int64_t start, int64_t stop, int64_t low, int16_t bound) {
    Keyed *all = &sieve->all;
    for (; start < stop; start = find_strip(row, start + STRIP, stop, bound))
        for (int64_t j = start; j < least(start + STRIP, stop); j += KEYS)
            for (uint64_t hits = bits_of(load_keys(row + j) > bound - (keys){0}); hits; hits &= hits - 1)
                if (is_full_with(all, low + j + __builtin_ctzll(hits) / BITS_PER_KEY))
                    score_waiting(sieve, user);
    if (all->n_waiting)
        score_waiting(sieve, user);
}

/* Return whether a user's target number t surely has `depth` candidates above it, these keys included. */
INLINE int is_too_deep(const Keyed *all, int64_t user, const int16_t *row, int64_t stop, int64_t t) {
    const Top *top = &all->top;
    int64_t missing = top->depth - top->block->above[top->block->test.begin[user] + t];
    return count_above(row, stop, all->highs[t]) >= missing;
}

/* Drop the targets that are too deep by the keys alone: mostly none, and else all from some number on. */
static void drop_deep(Keyed *all, int64_t user, const int16_t *row, int64_t stop) {
    Top *top = &all->top;
    int64_t low = 0, high = top->open[user] - 1; /* the first that is too deep is in low..high */
    if (!is_too_deep(all, user, row, stop, high))
        return;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (is_too_deep(all, user, row, stop, middle))
            high = middle;
        else
            low = middle + 1;
    }
    top->block->above[top->block->test.begin[user] + low] = top->depth;
    drop_targets(top, user);
}

static void count_passing(void *with, int64_t user, const Rounded *items, const int16_t *row, int64_t stop, int64_t low) {
    Sieve *sieve = with;
    Top *top = &sieve->all.top;
    const number *targets = top->block->targets;
    set_bounds(&sieve->all, user, items, targets + top->block->test.begin[user], top->open[user]);
    drop_deep(&sieve->all, user, row, stop);
    if (!top->open[user])
        return;
    int16_t bound = sieve->all.lows[top->open[user] - 1];
    pass(sieve, user, row, find_strip(row, 0, stop, bound), stop, low, bound);
    drop_targets(top, user);
}

static void search_passing(void *with, int64_t user, const Rounded *items, const int16_t *row, int64_t stop, int64_t low) {
    Sieve *sieve = with;
    Search *search = sieve->search;
    set_bounds(&sieve->all, user, items, search->bounds + user, 1);
    int16_t bound = sieve->all.lows[0];
    int64_t start = find_strip(row, 0, stop, bound);
    if (start >= stop)
        return;
    resume(search, sieve->best, user);
    pass(sieve, user, row, start, stop, low, bound);
    finish(search, sieve->best, user);
}

int64_t count_sieve(
    const Matrix *users, const Matrix *items, const float *bias, Block *block, const Ordered *ordered, int64_t depth,
    int64_t start, int64_t stop) {
    int64_t first = (LEAST_FIRST + FIRST_PER_DEPTH * least(depth, items->rows)) / BUCKET * BUCKET;
    if (start < first) {
        int64_t status = count_int16(users, items, bias, block, ordered, depth, start, least(first, stop));
        if (status != DONE || stop <= first)
            return status;
    }
    if (!is_valid_call(block, users, items, ordered, start))
        return INVALID;
    if (users->columns > MOST_COLUMNS)
        return GAVE_UP;
    Sieve sieve = {.all = {
        .top = {
            .users = users, .items = items, .bias = bias, .ordered = ordered, .block = block, .depth = depth,
            .growth = 4},
        .free = FREE + EACH * depth, .share = SHARE}};
    return take_places(&sieve.all, most(start, first), stop, count_passing, &sieve);
}

int64_t best_sieve(
    const Matrix *users, const Matrix *items, const float *bias, Best *best, const Ordered *ordered, int64_t start,
    int64_t stop) {
    if (!has_valid_spans(best))
        return INVALID;
    Search search = {0};
    Block block = {.users = best->users, .train = best->excluded};
    Sieve sieve = {
        .all = {
            .top = {
                .users = users, .items = items, .bias = bias, .ordered = ordered, .block = &block, .depth = 1,
                .growth = 2},
            .free = FREE + EACH * best->k, .share = SHARE},
        .search = &search, .best = best};
    int64_t status = new_search(&search, best) && set_bounds_as_targets(&block, &search) ? DONE : NO_MEMORY;
    if (status == DONE && !is_valid_call(&block, users, items, ordered, start))
        status = INVALID;
    if (status == DONE && (users->columns > MOST_COLUMNS || start == 0))
        status = GAVE_UP;
    if (status == DONE)
        status = take_places(&sieve.all, start, stop, search_passing, &sieve);
    if (stop == items->rows && status == DONE)
        sort_rows(&search, best);
    free(block.above);
    free(search.memory);
    return status;
}

#else

int64_t count_sieve(
    const Matrix *users, const Matrix *items, const float *bias, Block *block, const Ordered *ordered, int64_t depth,
    int64_t start, int64_t stop) {
    (void)users, (void)items, (void)bias, (void)block, (void)ordered, (void)depth, (void)start, (void)stop;
    return GAVE_UP;
}

int64_t best_sieve(
    const Matrix *users, const Matrix *items, const float *bias, Best *best, const Ordered *ordered, int64_t start,
    int64_t stop) {
    (void)users, (void)items, (void)bias, (void)best, (void)ordered, (void)start, (void)stop;
    return GAVE_UP;
}

#endif
