/* Counts of float32 scores by products of whole numbers of 16 bits, of which a register holds twice as many.

   Factors are scaled and rounded to whole numbers, so that their sums of products are exact, and differ from the scores
   by no more than a known margin. The upper half of a sum, a key, decides all but the pairs of an item and a target
   that are closer than that (one in 1,000, with trained models); for these the score itself is computed. So all counts
   are exactly those of the float32 scores. If too many are close, for example because many items tie, the loop gives
   up. Items are in the order of falling lengths, because those of a chunk share a scale, and because counts down to a
   depth are then soon complete for most users (see top.inc). */

#define NUMBER_BITS 32
#include "best.h"
#include "top.h"

#if defined(__SSE2__)
#include <immintrin.h>

enum {
    FREE = 16,   /* close calls per user that are always allowed: the longest items have more than others */
    SHARE = 100, /* beyond these, at most one close call in so many scores: computing more takes longer than is saved */
    KEYS = VECTOR_BYTES / 2,
    STRIP = 16, /* vectors of keys that are searched together for close calls; a chunk has at most 64 strips */
    MASKED = -32768, /* below the key of any sum */
    MOST_COLUMNS = 1 << 16, /* with more, rounding could make rows so long that sums overflow */
};

typedef int16_t keys __attribute__((vector_size(VECTOR_BYTES)));

/* Products of neighbours are added in pairs; sums are shortened to keys lane by lane of 16 bytes. */
#if defined(__AVX512BW__)
enum { BITS_PER_KEY = 1 };
INLINE uint64_t bits_of(keys hits) {
    return _mm512_movepi16_mask((__m512i)hits);
}
INLINE wholes multiply(wholes a, wholes b) {
    return (wholes)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}
INLINE keys shorten(wholes a, wholes b) {
    return (keys)_mm512_packs_epi32((__m512i)(a >> 16), (__m512i)(b >> 16));
}
#elif defined(__AVX2__)
enum { BITS_PER_KEY = 2 };
INLINE uint64_t bits_of(keys hits) {
    return (uint32_t)_mm256_movemask_epi8((__m256i)hits) & 0x55555555;
}
INLINE wholes multiply(wholes a, wholes b) {
    return (wholes)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}
INLINE keys shorten(wholes a, wholes b) {
    return (keys)_mm256_packs_epi32((__m256i)(a >> 16), (__m256i)(b >> 16));
}
#else
enum { BITS_PER_KEY = 2 };
INLINE uint64_t bits_of(keys hits) {
    return (uint32_t)_mm_movemask_epi8((__m128i)hits) & 0x5555;
}
INLINE wholes multiply(wholes a, wholes b) {
    return (wholes)_mm_madd_epi16((__m128i)a, (__m128i)b);
}
INLINE keys shorten(wholes a, wholes b) {
    return (keys)_mm_packs_epi32((__m128i)(a >> 16), (__m128i)(b >> 16));
}
#endif

/* A row of factors in whole numbers: row * scale, rounded, has a length of at most 46,128, so that no sum exceeds 2^31. */
typedef struct {
    double length, scale;
    double error; /* the length of what rounding adds to the row */
} Rounded;

typedef struct {
    Top top;
    int64_t pairs;      /* of factors, with a zero if their number is odd */
    Rounded *rounded;   /* of each user */
    int32_t *users;     /* rows of pairs */
    int32_t *panel;     /* pairs of USERS users side by side */
    int32_t *items;     /* panels of PANEL items side by side */
    int16_t *keys;      /* of one panel of users: rows of length ROW */
    int16_t *kept;      /* of one user, whole vectors of them */
    int16_t *starts;    /* where each vector of keys was in the row */
    int16_t *highs, *lows; /* per target of a user: keys above the first are above it, up to the second below it */
    int64_t waiting[CHAINS], waiting_for[CHAINS], n_waiting; /* items, and the targets that they are close to */
    int64_t n_close, n_scores;
    void *memory;
} Short;

enum { PARTS = 8 }; /* sums that are computed side by side */

/* Return the largest absolute value and, in `length`, the length of a row, with the bias as an additional column. */
static double measure(const Matrix *rows, int64_t row, const number *bias, double *size) {
    double squares[PARTS] = {0}, largest[PARTS] = {0}, total = 0, most_of_all = 0;
    int64_t k = 0;
    if (rows->column_step == 1)
        for (const number *from = row_of(rows, row); k + PARTS <= rows->columns; k += PARTS)
            for (int j = 0; j < PARTS; j++) {
                double value = from[k + j], positive = value < 0 ? -value : value;
                squares[j] += value * value;
                largest[j] = positive > largest[j] ? positive : largest[j];
            }
    for (int64_t rest = k; rest < rows->columns + (bias != NULL); rest++) {
        double value = rest < rows->columns ? at(rows, row, rest) : bias[row];
        squares[0] += value * value;
        largest[0] = fmax(largest[0], fabs(value));
    }
    for (int j = 0; j < PARTS; j++) {
        total += squares[j];
        most_of_all = fmax(most_of_all, largest[j]);
    }
    *size = sqrt(total) * (1 + 0x1p-36);
    return most_of_all;
}

static double scale_of(double length, double largest) {
    return length > 0 ? fmin(46000 / length, 32767 / largest) : 1;
}

/* Write a row of factors, times the scale, in whole numbers; return the length of what rounding adds, in their unit. */
static double round_row(const Matrix *rows, int64_t row, const number *bias, double scale, int64_t pairs, int16_t *out) {
    double squares[PARTS] = {0}, total = 0, middle = 0x1.8p52; /* adding and subtracting it rounds */
    int64_t columns = rows->columns + (bias != NULL), k = 0;
    if (rows->column_step == 1)
        for (const number *from = row_of(rows, row); k + PARTS <= rows->columns; k += PARTS)
            for (int j = 0; j < PARTS; j++) {
                double value = from[k + j] * scale, whole = (value + middle) - middle;
                squares[j] += (value - whole) * (value - whole);
                out[k + j] = (int16_t)(int32_t)whole;
            }
    for (; k < columns; k++) {
        double value = (k < rows->columns ? at(rows, row, k) : bias[row]) * scale, whole = (value + middle) - middle;
        squares[0] += (value - whole) * (value - whole);
        out[k] = (int16_t)(int32_t)whole;
    }
    if (columns < 2 * pairs)
        out[columns] = 0;
    for (int j = 0; j < PARTS; j++)
        total += squares[j];
    return sqrt(total) * (1 + 0x1p-36) + 0x1p-30;
}

static int new_short(Short *all) {
    Top *top = &all->top;
    int64_t users = top->block->users, pairs = all->pairs = (top->users->columns + 1) / 2, longest = 0;
    for (int64_t user = 0; user < users; user++)
        longest = most(longest, top->open[user]);
    int64_t rows = users * pairs, of_items = (top->tiles.chunk + PANEL) * pairs;
    all->memory = malloc(
        users * sizeof *all->rounded + (rows + USERS * pairs + of_items) * sizeof(int32_t) +
        ((USERS + 1) * ROW + CHUNK / KEYS + 1 + 2 * (longest + 1)) * sizeof(int16_t) + 64);
    if (!all->memory)
        return 0;
    all->items = (int32_t *)(((uintptr_t)all->memory + 63) / 64 * 64);
    all->rounded = (Rounded *)(all->items + of_items / 2 * 2);
    all->users = (int32_t *)(all->rounded + users);
    all->panel = all->users + rows;
    all->keys = (int16_t *)(all->panel + USERS * pairs);
    all->kept = all->keys + USERS * ROW;
    all->starts = all->kept + ROW;
    all->highs = all->starts + CHUNK / KEYS + 1;
    all->lows = all->highs + longest + 1;
    for (int64_t user = 0; user < users; user++) {
        Rounded *own = all->rounded + user;
        if (!top->open[user])
            continue;
        double largest = measure(top->users, user, NULL, &own->length);
        own->scale = scale_of(own->length, largest);
        int16_t *out = (int16_t *)(all->users + user * pairs);
        own->error = round_row(top->users, user, NULL, own->scale, pairs, out) / own->scale;
    }
    return 1;
}

/* Return which of the PANEL places side by side holds an item, so that shortening brings all into their order. */
INLINE int64_t slot_of(int64_t item) {
    int64_t within = item % 8;
    return item / 8 * 4 + within % 4 + (within < 4 ? 0 : LANES);
}

/* Round the items at places low..high - 1 into panels; return what they have in common. */
static Rounded round_items(Short *all, int64_t low, int64_t high) {
    const Top *top = &all->top;
    const int32_t *chosen = top->ordered->items;
    Rounded common = {0};
    double largest = 0, length;
    for (int64_t place = low; place < high; place++) {
        largest = fmax(largest, measure(top->items, chosen[place], top->bias, &length));
        common.length = fmax(common.length, length);
    }
    common.scale = scale_of(common.length, largest);
    int32_t *row = all->panel; /* for users later */
    int64_t last = (high - low) / PANEL * PANEL * all->pairs;
    memset(all->items + last, 0, PANEL * all->pairs * sizeof *all->items);
    for (int64_t place = low; place < high; place++) {
        int64_t item = place - low;
        int32_t *panel = all->items + item / PANEL * PANEL * all->pairs + slot_of(item % PANEL);
        double error = round_row(top->items, chosen[place], top->bias, common.scale, all->pairs, (int16_t *)row);
        common.error = fmax(common.error, error / common.scale);
        for (int64_t k = 0; k < all->pairs; k++)
            panel[k * PANEL] = row[k];
    }
    return common;
}

/* Compute the keys of one panel of users with one panel of items. */
static void key_tile(const int32_t *users, const int32_t *items, int64_t pairs, int16_t *out) {
    wholes sums[USERS][2] = {{{0}}};
    for (int64_t k = 0; k < pairs; k++) {
        wholes left, right;
        memcpy(&left, items + k * PANEL, sizeof left);
        memcpy(&right, items + k * PANEL + LANES, sizeof right);
        __builtin_prefetch(items + (pairs + k) * PANEL); /* of the next tile */
        UNROLLED for (int row = 0; row < USERS; row++) {
            wholes user = users[k * USERS + row] - (wholes){0};
            sums[row][0] += multiply(user, left);
            sums[row][1] += multiply(user, right);
        }
    }
    UNROLLED for (int row = 0; row < USERS; row++) {
        keys key = shorten(sums[row][0], sums[row][1]);
        memcpy(out + row * ROW, &key, sizeof key);
    }
}

/* Compute the keys of some chosen users, at most USERS, with all items of the chunk. */
static void key_panel(Short *all, const int32_t *chosen, int64_t size, int64_t n_items) {
    for (int64_t i = 0; i < USERS; i++) {
        const int32_t *row = all->users + chosen[least(i, size - 1)] * all->pairs;
        for (int64_t k = 0; k < all->pairs; k++)
            all->panel[k * USERS + i] = row[k];
    }
    for (int64_t item = 0; item < n_items; item += PANEL)
        key_tile(all->panel, all->items + item * all->pairs, all->pairs, all->keys + item);
}

/* Mask items that are not counted, and up to a whole vector; return its end. */
static int64_t mask_keys(Lists *masked, int64_t user, int16_t *row, int64_t low, int64_t high) {
    int64_t next = masked->next[user], end = masked->end[user], stop = high - low;
    for (; next < end && masked->items[next] < high; next++)
        if (masked->items[next] >= low) /* others are in chunks that were skipped */
            row[masked->items[next] - low] = MASKED;
    masked->next[user] = next;
    while (stop % KEYS)
        row[stop++] = MASKED;
    return stop;
}

INLINE int16_t as_key(double value) {
    return (int16_t)fmin(fmax(floor(value * 0x1p-16), MASKED), 32767);
}

/* Find the keys that decide, for the targets of one user.

   The sums of rounded factors differ from the scaled exact ones by what rounding adds to either row, times the length
   of the other; the float32 score differs from the exact one by less than a part in 2^23 per addition. */
static void set_bounds(Short *all, int64_t user, const Rounded *items, const number *targets, int64_t size) {
    const Rounded *own = all->rounded + user;
    double scale = own->scale * items->scale, columns = all->top.users->columns;
    double rounding = (columns + 8) * (0x1p-23 * own->length * items->length + 0x1p-148);
    double off = own->error * items->length + own->length * items->error + own->error * items->error + rounding;
    double margin = scale * off * (1 + 0x1p-30) + 1;
    for (int64_t t = 0; t < size; t++) {
        all->highs[t] = as_key(scale * targets[t] + margin);
        all->lows[t] = as_key(scale * targets[t] - margin - 0x1p16);
    }
}

INLINE keys load_keys(const int16_t *from) {
    keys key;
    memcpy(&key, from, sizeof key);
    return key;
}

INLINE int64_t sum_keys(keys counts) {
    return sum(multiply((wholes)counts, (wholes)(1 - (keys){0})));
}

/* Copy the vectors of which any key is above `bound` to `kept`, which may be the same place; return their end. */
static int64_t keep_keys(Short *all, const int16_t *row, int64_t stop, int16_t bound) {
    int64_t size = 0;
    for (int64_t j = 0; j < stop; j += KEYS) {
        keys key = load_keys(row + j);
        memcpy(all->kept + size, &key, sizeof key);
        all->starts[size / KEYS] = all->starts[j / KEYS];
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
static void score_waiting(Short *all, int64_t user) {
    const Top *top = &all->top;
    const number *targets = top->block->targets;
    number scores[CHAINS];
    score_some(top->users, user, top->items, top->bias, all->waiting, all->n_waiting, scores);
    for (int64_t i = 0; i < all->n_waiting; i++) {
        int64_t t = all->waiting_for[i];
        top->block->above[t] += scores[i] > targets[t];
        top->block->tied[t] += scores[i] == targets[t];
    }
    all->n_close += all->n_waiting;
    all->n_waiting = 0;
}

/* Find the items of a strip whose keys are too close to a target; their scores are computed CHAINS at a time. */
static void settle(Short *all, int64_t user, const int16_t *row, int64_t start, int64_t stop, int64_t low, int64_t t) {
    keys high = all->highs[t] - (keys){0}, bottom = all->lows[t] - (keys){0};
    for (int64_t j = start; j < stop; j += KEYS) {
        keys key = load_keys(row + j);
        for (uint64_t hits = bits_of((key > bottom) & (key <= high)); hits; hits &= hits - 1) {
            int64_t place = low + all->starts[j / KEYS] + __builtin_ctzll(hits) / BITS_PER_KEY;
            all->waiting[all->n_waiting] = all->top.ordered->items[place];
            all->waiting_for[all->n_waiting++] = all->top.block->test.begin[user] + t;
            if (all->n_waiting == CHAINS)
                score_waiting(all, user);
        }
    }
}

/* Count one user's masked keys, of the items from place `low` on, for the lowest targets first: what is below these is
   below all others too. Targets that are too deep by the keys alone need not be settled. */
static void count_keys(Short *all, int64_t user, const Rounded *items, const int16_t *row, int64_t stop, int64_t low) {
    Top *top = &all->top;
    int64_t first = top->block->test.begin[user], *above = top->block->above + first;
    set_bounds(all, user, items, (const number *)top->block->targets + first, top->open[user]);
    for (int64_t i = 0; i * KEYS < stop; i++)
        all->starts[i] = (int16_t)(i * KEYS);
    for (int64_t size = top->open[user], from; size > 0 && stop > 0; size = from) {
        uint64_t strips[GROUP];
        from = most(size - GROUP, 0);
        if (is_worth_keeping_keys(row, stop, all->lows[size - 1], size)) {
            stop = keep_keys(all, row, stop, all->lows[size - 1]);
            row = all->kept;
        }
        compare_group_of_keys(size - from, row, stop, all->highs + from, all->lows + from, above + from, strips);
        for (int64_t t = from; t < size && above[t] < top->depth; t++)
            for (uint64_t some = strips[t - from]; some; some &= some - 1) {
                int64_t start = __builtin_ctzll(some) * STRIP * KEYS;
                settle(all, user, row, start, least(stop, start + STRIP * KEYS), low, t);
            }
    }
    if (all->n_waiting)
        score_waiting(all, user);
    drop_targets(top, user);
}

static int64_t count_chunk(Short *all, int64_t low, int64_t high) {
    Top *top = &all->top;
    int64_t size = choose_users(top, low, high);
    if (!size)
        return DONE;
    Rounded items = round_items(all, low, high);
    for (int64_t start = 0; start < size; start += USERS) {
        int64_t stop = least(start + USERS, size);
        key_panel(all, top->chosen + start, stop - start, high - low);
        for (int64_t i = start; i < stop; i++) {
            int16_t *row = all->keys + (i - start) * ROW;
            int64_t user = top->chosen[i];
            int64_t end = mask_keys(&top->block->train, user, row, low, high);
            count_keys(all, user, &items, row, end, low);
            all->n_scores += end;
        }
        if (all->n_close > FREE * top->block->users + all->n_scores / SHARE)
            return GAVE_UP;
    }
    return DONE;
}

/* Score the items that wait, the first `size` of the search's numbers, and collect those that may be among the best. */
static void collect_waiting(Short *all, Search *search, int64_t user, int64_t size) {
    const Top *top = &all->top;
    number scores[CHAINS + PANEL];
    for (int64_t i = 0; i < size; i++)
        all->waiting[i] = search->numbers[i];
    score_some(top->users, user, top->items, top->bias, all->waiting, size, scores);
    for (int64_t i = size; i % PANEL; i++)
        scores[i] = NAN;
    for (int64_t start = 0; start < size; start += PANEL)
        collect(search, scores, start);
    all->n_close += size;
}

/* Take the best of one user's items from place `low` on, by their masked keys. */
static void search_keys(
    Short *all, Search *search, Best *best, int64_t user, const Rounded *items, const int16_t *row, int64_t stop,
    int64_t low) {
    int64_t waiting = 0, is_new = 0;
    set_bounds(all, user, items, search->bounds + user, 1);
    keys bottom = all->lows[0] - (keys){0};
    for (int64_t j = 0; j < stop; j += KEYS)
        for (uint64_t hits = bits_of(load_keys(row + j) > bottom); hits; hits &= hits - 1) {
            if (!is_new++)
                resume(search, best, user);
            int64_t place = low + j + __builtin_ctzll(hits) / BITS_PER_KEY;
            search->numbers[waiting++] = all->top.ordered->items[place];
            if (waiting == CHAINS) {
                collect_waiting(all, search, user, waiting);
                waiting = 0;
            }
        }
    if (waiting)
        collect_waiting(all, search, user, waiting);
    if (is_new)
        finish(search, best, user);
}

/* Search the items at places low..high - 1; give up if many more are close than if the order of items were random. */
static int64_t search_chunk_of_keys(Short *all, Search *search, Best *best, int64_t low, int64_t high) {
    Top *top = &all->top;
    int64_t size = choose_users(top, low, high);
    if (!size)
        return DONE;
    Rounded items = round_items(all, low, high);
    for (int64_t start = 0; start < size; start += USERS) {
        int64_t stop = least(start + USERS, size);
        key_panel(all, top->chosen + start, stop - start, high - low);
        for (int64_t i = start; i < stop; i++) {
            int16_t *row = all->keys + (i - start) * ROW;
            int64_t user = top->chosen[i], end = mask_keys(&top->block->train, user, row, low, high);
            search_keys(all, search, best, user, &items, row, end, low);
        }
        all->n_scores += (stop - start) * (high - low) * best->k / most(low, 1);
        if (all->n_close > 1000 + 4 * all->n_scores)
            return GAVE_UP;
    }
    return DONE;
}

int64_t best_int16(
    const Matrix *users, const Matrix *items, const float *bias, Best *best, const Ordered *ordered, int64_t start,
    int64_t stop) {
    if (!has_valid_spans(best))
        return INVALID;
    Search search = {0};
    Block block = {.users = best->users, .train = best->excluded};
    Short all = {.top = {
        .users = users, .items = items, .bias = bias, .ordered = ordered, .block = &block, .depth = 1, .growth = 4}};
    int64_t status = new_search(&search, best) && set_bounds_as_targets(&block, &search) ? DONE : NO_MEMORY;
    if (status == DONE && !is_valid_call(&block, users, items, ordered, start))
        status = INVALID;
    if (status == DONE && (users->columns > MOST_COLUMNS || start == 0))
        status = GAVE_UP;
    if (status == DONE && !(new_top(&all.top) && new_short(&all)))
        status = NO_MEMORY;
    for (int64_t low = start, high; low < stop && status == DONE; low = high) {
        high = end_of_chunk(&all.top, low, stop);
        status = search_chunk_of_keys(&all, &search, best, low, high);
    }
    if (stop == items->rows && status == DONE)
        sort_rows(&search, best);
    free(block.above);
    free(all.top.tiles.memory);
    free(all.top.memory);
    free(all.memory);
    free(search.memory);
    return status;
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
    Short all = {.top = {
        .users = users, .items = items, .bias = bias, .ordered = ordered, .block = block, .depth = depth,
        .growth = depth == INT64_MAX ? 1 : 4}};
    status = new_top(&all.top) && new_short(&all) ? DONE : NO_MEMORY;
    for (int64_t low = start, high; low < stop && status == DONE; low = high) {
        high = end_of_chunk(&all.top, low, stop);
        status = count_chunk(&all, low, high);
        if (status == DONE && low == 0 && high < ordered->size)
            status = sort_masked(&all.top);
    }
    free(all.top.tiles.memory);
    free(all.top.memory);
    free(all.memory);
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

int64_t best_int16(
    const Matrix *users, const Matrix *items, const float *bias, Best *best, const Ordered *ordered, int64_t start,
    int64_t stop) {
    (void)users, (void)items, (void)bias, (void)best, (void)ordered, (void)start, (void)stop;
    return GAVE_UP;
}

#endif
