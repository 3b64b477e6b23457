/* Counts of float32 scores, mostly by keys from factors of 16 bits.

   These decide all but the pairs of an item and a target that are closer than their margin (one in 1,000, with trained
   models); for these the score itself is computed. So all counts are exactly those of the float32 scores. If too many
   are close, for example because many items tie, the loop gives up. */

#include "kernels.h"

#if defined(__SSE2__)
#define ROUNDED_BITS 16
#include "keys.h"

enum {
    FREE = 64,   /* close calls per user that are always allowed: the longest items have more than others */
#ifdef __AVX512VNNI__
    SHARE = 50, /* dot products save more time, so more of it may be spent on close calls */
    TRIED_SHARE = SHARE,
#else
    SHARE = 100, /* beyond these, at most one close call in so many keys */
    TRIED_SHARE = 220, /* the same in a sample; what is counted already is not given up so soon */
#endif
    STRIP = 16,  /* vectors of keys that are searched together for close calls; a chunk has at most 64 strips */
};

/* Items of a chunk, copied side by side: in the order of lengths they would be all over memory, and fetching those to be
   scored would take longer than scoring them. */
typedef struct {
    int64_t low; /* the place of the first one */
    Matrix factors;
    number *numbers, *bias;
    void *memory;
} Copied;

typedef struct {
    Keyed all;
    Copied copied;
    int16_t kept[ROW];                /* of one user, whole vectors of keys */
    int16_t starts[CHUNK / KEYS + 1]; /* where each vector of keys was in the row */
    int64_t waiting_for[CHAINS];      /* the targets that the waiting items are close to */
} Counter;

/* Get room for the items of any chunk, whose rows begin with a line of the cache; return whether there is memory. */
static int new_copied(Copied *copied, const Top *top) {
    enum { LINE = 64 / sizeof(number) };
    int64_t columns = top->items->columns, step = (columns + LINE - 1) / LINE * LINE;
    int64_t chunk = least(items_per_chunk(top->users->columns), top->ordered->size);
    copied->memory = malloc(chunk * (step + 1) * sizeof(number) + 64);
    copied->numbers = (number *)(((uintptr_t)copied->memory + 63) / 64 * 64);
    copied->bias = top->bias ? copied->numbers + chunk * step : NULL;
    copied->factors = (Matrix){copied->numbers, chunk, columns, step, 1};
    copied->low = -1;
    return copied->memory != NULL;
}

/* Copy the items at places low..high - 1. */
static void copy_items(Copied *copied, const Top *top, int64_t low, int64_t high) {
    copied->low = low;
    for (int64_t i = 0; i < high - low; i++) {
        int64_t item = top->ordered->items[low + i];
        number *row = copied->numbers + i * copied->factors.row_step;
        for (int64_t k = 0; k < copied->factors.columns; k++)
            row[k] = at(top->items, item, k);
        if (top->bias)
            copied->bias[i] = top->bias[item];
    }
}

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
    score_some(
        top->users, user, &counter->copied.factors, counter->copied.bias, all->waiting, all->n_waiting, scores);
    for (int64_t i = 0; i < all->n_waiting; i++) {
        int64_t t = counter->waiting_for[i];
        top->block->above[t] += scores[i] > targets[t];
        top->block->tied[t] += scores[i] == targets[t];
    }
    all->n_close += all->n_waiting;
    all->n_waiting = 0;
}

/* Let an item of the chunk wait for its score, and fetch its factors early. */
INLINE void let_wait(Counter *counter, int64_t user, int64_t item, int64_t t) {
    Keyed *all = &counter->all;
    fetch_item(&counter->copied.factors, item);
    counter->waiting_for[all->n_waiting] = t;
    all->waiting[all->n_waiting++] = item;
    if (all->n_waiting == CHAINS)
        score_waiting(counter, user);
}

/* Find the items of a strip whose keys are too close to a target; their scores are computed CHAINS at a time. */
static void settle(Counter *counter, int64_t user, const int16_t *row, int64_t start, int64_t stop, int64_t t) {
    Keyed *all = &counter->all;
    keys high = all->highs[t] - (keys){0}, bottom = all->lows[t] - (keys){0};
    for (int64_t j = start; j < stop; j += KEYS) {
        keys key = load_keys(row + j);
        for (uint64_t hits = bits_of((key > bottom) & (key <= high)); hits; hits &= hits - 1) {
            int64_t item = counter->starts[j / KEYS] + __builtin_ctzll(hits) / BITS_PER_KEY;
            let_wait(counter, user, item, all->top.block->test.begin[user] + t);
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
    if (counter->copied.low != low)
        copy_items(&counter->copied, top, low, least(low + stop, top->ordered->size));
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
                settle(counter, user, row, start, least(stop, start + STRIP * KEYS), t);
            }
    }
    if (all->n_waiting)
        score_waiting(counter, user);
    drop_targets(top, user);
}

/* Return how many times the score of one of some items is closer to a user's target than `wider` times a usual margin. */
static int64_t count_near(const Top *top, int64_t user, const int64_t *places, int64_t size, double wider) {
    const Block *block = top->block;
    const number *targets = block->targets;
    int64_t items[CHAINS], close = 0;
    number scores[CHAINS];
    for (int64_t i = 0; i < size; i++)
        items[i] = top->ordered->items[places[i]];
    score_some(top->users, user, top->items, top->bias, items, size, scores);
    double columns = top->users->columns, off = 2 * sqrt(columns / 12) / LONGEST_ITEM + columns * 0x1p-23 + 0x1p-16;
    double reach = wider * off * length(top->users, user, top->items->columns);
    for (int64_t i = 0; i < size; i++)
        for (int64_t t = block->test.begin[user]; t < block->test.end[user]; t++)
            close += fabs((double)scores[i] - targets[t]) < reach * top->ordered->lengths[places[i]];
    return close;
}

/* Return whether too many scores are likely to be close, to judge by some users and items from everywhere. Wider margins
   find enough of them. */
static int is_crowded(const Top *top) {
    enum { SAMPLED = 16, WIDER = 16 };
    int64_t users = top->block->users, n_items = top->ordered->size, close = 0, size = 0;
    for (int64_t i = 0; i < SAMPLED && users && n_items; i++)
        for (int64_t j = 0; j < SAMPLED; j++) {
            int64_t places[CHAINS];
            for (int64_t k = 0; k < CHAINS; k++)
                places[k] = (k * SAMPLED + j) * n_items / (CHAINS * SAMPLED);
            close += count_near(top, i * users / SAMPLED, places, CHAINS, WIDER);
            size += CHAINS;
        }
    return close * TRIED_SHARE > size * WIDER;
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
    if (start == 0 && depth == INT64_MAX && is_crowded(&counter.all.top))
        return GAVE_UP;
    status = new_copied(&counter.copied, &counter.all.top) ? DONE : NO_MEMORY;
    if (status == DONE)
        status = take_places(&counter.all, start, stop, count_keys, &counter);
    free(counter.copied.memory);
    return status;
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
