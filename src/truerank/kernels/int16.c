/* Counts of float32 scores, mostly by keys from factors of 16 bits.

   These decide all but the pairs of an item and a target that are closer than their margin (one in 1,000, with trained
   models); for these the score itself is computed. So all counts are exactly those of the float32 scores. If too many
   are close, for example because many items tie, the loop gives up. */

#include "kernels.h"

#if defined(__SSE2__)
#define ROUNDED_BITS 16
#include "keys.h"

enum {
    FREE = 16,   /* close calls per user that are always allowed: the longest items have more than others */
#ifdef DOT_PRODUCTS
    SHARE = 50, /* dot products save more time, so more of it may be spent on close calls */
#else
    SHARE = 100, /* beyond these, at most one close call in so many keys */
#endif
    STRIP = 16,  /* vectors of keys that are searched together for close calls; a chunk has at most 64 strips */
};

typedef struct {
    Keyed all;
    int16_t kept[ROW];                /* of one user, whole vectors of keys */
    int16_t starts[CHUNK / KEYS + 1]; /* where each vector of keys was in the row */
    int64_t waiting_for[CHAINS];      /* the targets that the waiting items are close to */
} Counter;

/* Copy the vectors of which any key is above `bound` to `kept`, which may be the same place; return their end. */
static int64_t keep_keys(Counter *counter, const int16_t *row, int64_t stop, int16_t bound) {
    int64_t size = 0;
    for (int64_t j = 0; j < stop; j += KEYS) {
        keys key = load_keys(row + j);
        memcpy(counter->kept + size, &key, sizeof key);
        counter->starts[size / KEYS] = counter->starts[j / KEYS];
        size += bits_of(key > bound - (keys){0}) ? KEYS : 0;
    }
    return size;
}

/* Return whether comparing keys with `size` bounds takes longer than first dropping vectors without a key above `bound`, to
   judge by a few of them. */
static int is_worth_keeping_keys(const int16_t *row, int64_t stop, int16_t bound, int64_t size) {
    enum { SAMPLED = 8 };
    int64_t vectors = stop / KEYS, low = 0;
    for (int64_t i = 0; i < SAMPLED && vectors >= SAMPLED; i++)
        low += !bits_of(load_keys(row + i * vectors / SAMPLED * KEYS) > bound - (keys){0});
    return low * size * 2 > SAMPLED * 3; /* dropping takes as long as comparing with one and a half */
}

/* Count, for some targets, the keys that are above; bit b of `strips` tells whether any of the STRIP vectors from
   b * STRIP on has one that is close. */
INLINE void compare_keys(
    int size, const int16_t *row, int64_t stop, const int16_t *highs, const int16_t *lows, int64_t *above,
    uint64_t *strips) {
    keys over[GROUP] = {{0}}, from[GROUP] = {{0}}, before[GROUP] = {{0}}; /* at most CHUNK / KEYS each */
    UNROLLED for (int g = 0; g < size; g++)
        strips[g] = 0;
    for (int64_t strip = 0; strip * STRIP * KEYS < stop; strip++) {
        for (int64_t j = strip * STRIP * KEYS; j < least(stop, (strip + 1) * STRIP * KEYS); j += KEYS) {
            keys key = load_keys(row + j);
            UNROLLED for (int g = 0; g < size; g++) {
                over[g] -= key > highs[g] - (keys){0};
                from[g] -= key > lows[g] - (keys){0};
            }
        }
        UNROLLED for (int g = 0; g < size; g++) {
            strips[g] |= (uint64_t)is_any((wholes)(from[g] - over[g] - before[g])) << strip;
            before[g] = from[g] - over[g];
        }
    }
    UNROLLED for (int g = 0; g < size; g++)
        above[g] += sum_keys(over[g]);
}

static void compare_group_of_keys(
    int64_t size, const int16_t *row, int64_t stop, const int16_t *highs, const int16_t *lows, int64_t *above,
    uint64_t *strips) {
    switch (size) {
    case 1: compare_keys(1, row, stop, highs, lows, above, strips); break;
    case 2: compare_keys(2, row, stop, highs, lows, above, strips); break;
    case 3: compare_keys(3, row, stop, highs, lows, above, strips); break;
    default: compare_keys(GROUP, row, stop, highs, lows, above, strips);
    }
}

/* Compute the scores of the items that wait for it, and compare each with its target. */
static void score_waiting(Counter *counter, int64_t user) {
    Keyed *all = &counter->all;
    const Top *top = &all->top;
    const number *targets = top->block->targets;
    number scores[CHAINS];
    score_some(top->users, user, top->items, top->bias, all->waiting, all->n_waiting, scores);
    for (int64_t i = 0; i < all->n_waiting; i++) {
        int64_t t = counter->waiting_for[i];
        top->block->above[t] += scores[i] > targets[t];
        top->block->tied[t] += scores[i] == targets[t];
    }
    all->n_close += all->n_waiting;
    all->n_waiting = 0;
}

/* Find the items of a strip whose keys are too close to a target; their scores are computed CHAINS at a time. */
static void settle(
    Counter *counter, int64_t user, const int16_t *row, int64_t start, int64_t stop, int64_t low, int64_t t) {
    Keyed *all = &counter->all;
    keys high = all->highs[t] - (keys){0}, bottom = all->lows[t] - (keys){0};
    for (int64_t j = start; j < stop; j += KEYS) {
        keys key = load_keys(row + j);
        for (uint64_t hits = bits_of((key > bottom) & (key <= high)); hits; hits &= hits - 1) {
            int64_t place = low + counter->starts[j / KEYS] + __builtin_ctzll(hits) / BITS_PER_KEY;
            counter->waiting_for[all->n_waiting] = all->top.block->test.begin[user] + t;
            if (is_full_with(all, place))
                score_waiting(counter, user);
        }
    }
}

/* Count one user's masked keys, of the items from place `low` on, for the lowest targets first: what is below these is
   below all others too. Targets that are too deep by the keys alone need not be settled. */
static void count_keys(void *with, int64_t user, const Rounded *items, const int16_t *row, int64_t stop, int64_t low) {
    Counter *counter = with;
    Keyed *all = &counter->all;
    Top *top = &all->top;
    int64_t first = top->block->test.begin[user], *above = top->block->above + first;
    set_bounds(all, user, items, (const number *)top->block->targets + first, top->open[user]);
    for (int64_t i = 0; i * KEYS < stop; i++)
        counter->starts[i] = (int16_t)(i * KEYS);
    for (int64_t size = top->open[user], from; size > 0 && stop > 0; size = from) {
        uint64_t strips[GROUP];
        from = most(size - GROUP, 0);
        if (is_worth_keeping_keys(row, stop, all->lows[size - 1], size)) {
            stop = keep_keys(counter, row, stop, all->lows[size - 1]);
            row = counter->kept;
        }
        compare_group_of_keys(size - from, row, stop, all->highs + from, all->lows + from, above + from, strips);
        for (int64_t t = from; t < size && above[t] < top->depth; t++)
            for (uint64_t some = strips[t - from]; some; some &= some - 1) {
                int64_t start = __builtin_ctzll(some) * STRIP * KEYS;
                settle(counter, user, row, start, least(stop, start + STRIP * KEYS), low, t);
            }
    }
    if (all->n_waiting)
        score_waiting(counter, user);
    drop_targets(top, user);
}

int64_t int16_lanes(void) {
    return KEYS;
}

int64_t count_int16(
    const Matrix *users, const Matrix *items, const float *bias, Block *block, const Ordered *ordered, int64_t depth,
    int64_t start, int64_t stop) {
    if (!is_valid_call(block, users, items, ordered, start))
        return INVALID;
    if (users->columns > MOST_COLUMNS)
        return GAVE_UP;
    int64_t status = start == 0 ? find_targets(users, items, bias, block) : DONE;
    if (status != DONE)
        return status;
    Counter counter;
    counter.all = (Keyed){
        .top = {
            .users = users, .items = items, .bias = bias, .ordered = ordered, .block = block, .depth = depth,
            .growth = depth == INT64_MAX ? 1 : 4},
        .free = FREE, .share = SHARE};
    return take_places(&counter.all, start, stop, count_keys, &counter);
}

#else

int64_t int16_lanes(void) {
    return 0;
}

int64_t count_int16(
    const Matrix *users, const Matrix *items, const float *bias, Block *block, const Ordered *ordered, int64_t depth,
    int64_t start, int64_t stop) {
    (void)users, (void)items, (void)bias, (void)block, (void)ordered, (void)depth, (void)start, (void)stop;
    return GAVE_UP;
}

#endif
