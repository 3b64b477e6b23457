/* Keys: scores by products of whole numbers, of which a register holds two or four times as many as of float32.

   Include with ROUNDED_BITS defined as 16 or 8. Factors are scaled and rounded to whole numbers of so many bits, so that
   their sums of products are exact, and differ from the scores by no more than a known margin. A sum, or its upper part,
   is a key of 16 bits; keys tell on which side of a target a score is, unless it is closer than the margin. Items are
   in the order of falling lengths, because those of a chunk share a scale.

   With AVX-512 VNNI one instruction multiplies and adds to sums of 32 bits, which leave room for larger
   numbers of 8 bits, and so for a smaller margin. */

#ifndef KEYS_H
#define KEYS_H

#define NUMBER_BITS 32
#include "top.h"

#include <immintrin.h>

enum {
    KEYS = VECTOR_BYTES / 2,
    MASKED = -32768, /* below the key of any sum */
};

typedef int16_t keys __attribute__((vector_size(VECTOR_BYTES)));

#if ROUNDED_BITS == 16
typedef int16_t rounded;
enum {
    OFFSET = 0,
    LONGEST_USER = 46340, LONGEST_ITEM = 46340, /* lengths of rounded rows, whose product is below 2^31 */
    LARGEST_USER = 32767, LARGEST_ITEM = 32767,
    SHIFT = 16, /* from a sum to its key */
    MOST_COLUMNS = 1 << 16, /* with more, rounding could add too much to the length of a row */
};
#elif defined(__AVX512VNNI__)
typedef int8_t rounded;
enum {
    OFFSET = 128, /* is added to the factors of users, because one side of the products is unsigned */
    LONGEST_USER = 1024, LONGEST_ITEM = 1023, /* their product is below 2^20 */
    LARGEST_USER = 127, LARGEST_ITEM = 127,
    SHIFT = 5,
    MOST_COLUMNS = 1 << 10,
};
#else
typedef int8_t rounded;
enum {
    OFFSET = 64,
    LONGEST_USER = 128, LONGEST_ITEM = 255, /* their product is below 2^15 */
    LARGEST_USER = 63, LARGEST_ITEM = 127, /* the sum of two products, offset included, is below 2^15 */
    SHIFT = 0,
    MOST_COLUMNS = 1 << 10,
};
#endif

#if ROUNDED_BITS == 16 || defined(__AVX512VNNI__)
typedef int32_t bundle; /* of factors that are multiplied and added by one instruction */
typedef wholes sums;
enum { TILE = KEYS }; /* items of a tile */
#else
typedef int16_t bundle;
typedef uint16_t sums __attribute__((vector_size(VECTOR_BYTES)));
enum { TILE = 2 * KEYS };
#endif
enum {
    UNIT = 1 << SHIFT,
    BUNDLED = sizeof(bundle) / sizeof(rounded),
    IS_SHORTENED = sizeof(bundle) > sizeof(int16_t), /* whether a sum has more bits than its key */
};

#if defined(__AVX512BW__)
typedef __m512i raw;
#define INTRINSIC(name) _mm512_##name
enum { BITS_PER_KEY = 1 };
INLINE uint64_t bits_of(keys hits) {
    return _mm512_movepi16_mask((raw)hits);
}
#elif defined(__AVX2__)
typedef __m256i raw;
#define INTRINSIC(name) _mm256_##name
enum { BITS_PER_KEY = 2 };
INLINE uint64_t bits_of(keys hits) {
    return (uint32_t)_mm256_movemask_epi8((raw)hits) & 0x55555555;
}
#else
typedef __m128i raw;
#define INTRINSIC(name) _mm_##name
enum { BITS_PER_KEY = 2 };
INLINE uint64_t bits_of(keys hits) {
    return (uint32_t)_mm_movemask_epi8((raw)hits) & 0x5555;
}
#endif

INLINE wholes multiply(wholes a, wholes b) {
    return (wholes)INTRINSIC(madd_epi16)((raw)a, (raw)b);
}

/* Add the products of the factors in bundles. */
INLINE sums add_products(sums totals, wholes users, sums items) {
#if ROUNDED_BITS == 16 && defined(__AVX512VNNI__)
    return (sums)INTRINSIC(dpwssd_epi32)((raw)totals, (raw)users, (raw)items);
#elif defined(__AVX512VNNI__)
    return (sums)INTRINSIC(dpbusd_epi32)((raw)totals, (raw)users, (raw)items);
#elif ROUNDED_BITS == 16
    return totals + multiply(users, items);
#else
    return totals + (sums)INTRINSIC(maddubs_epi16)((raw)users, (raw)items);
#endif
}

/* Return the keys of sums of 32 bits, lane by lane of 16 bytes. */
INLINE keys shorten(wholes a, wholes b) {
    return (keys)INTRINSIC(packs_epi32)((raw)(a >> SHIFT), (raw)(b >> SHIFT));
}

/* A row of factors in whole numbers: row * scale, rounded. */
typedef struct {
    double length, scale;
    double error; /* the length of what rounding adds to the row */
} Rounded;

typedef struct {
    Top top;
    int64_t bundles;    /* of the factors of a row, with zeros at the end of the last one */
    Rounded *rounded;   /* of each user */
    bundle *users;      /* rows of bundles */
    int32_t *panel;     /* bundles of USERS users side by side */
    bundle *items;      /* panels of TILE items side by side */
    bundle *bases;      /* of items: what the sums start from, to make up for the offset */
    int16_t *keys;      /* of one panel of users: rows of length ROW */
    int16_t *highs, *lows; /* per target of a user: keys above the first are above it, up to the second below it */
    int64_t waiting[CHAINS], n_waiting; /* items whose scores are to be computed, together */
    int64_t n_close, n_scores; /* scores that were computed, and keys */
    int64_t free, share; /* more than `free` scores per user, and one in `share` keys, take longer than is saved */
    void *memory;
} Keyed;

enum {
    PARTS = 8, /* sums that are computed side by side */
    AHEAD = 8, /* items that are fetched before they are read */
};

/* Return the largest absolute value and, in `size`, the length of a row, with the bias as an additional column. */
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

/* Return a scale with which a row stays within the limits; rounding adds at most half a unit to each of its numbers. */
static double scale_of(double length, double largest, int64_t bundles, double longest, double limit) {
    return length > 0 ? fmin((longest - sqrt(BUNDLED * bundles) / 2) / length, limit / largest) : 1;
}

/* Write a row of factors, times the scale, in whole numbers; return the length of what rounding adds, in their unit. */
static double round_row(
    const Matrix *rows, int64_t row, const number *bias, double scale, int64_t bundles, int32_t offset, rounded *out) {
    double squares[PARTS] = {0}, total = 0, middle = 0x1.8p52; /* adding and subtracting it rounds */
    int64_t columns = rows->columns + (bias != NULL), k = 0;
    if (rows->column_step == 1)
        for (const number *from = row_of(rows, row); k + PARTS <= rows->columns; k += PARTS)
            for (int j = 0; j < PARTS; j++) {
                double value = from[k + j] * scale, whole = (value + middle) - middle;
                squares[j] += (value - whole) * (value - whole);
                out[k + j] = (rounded)((int32_t)whole + offset);
            }
    for (; k < columns; k++) {
        double value = (k < rows->columns ? at(rows, row, k) : bias[row]) * scale, whole = (value + middle) - middle;
        squares[0] += (value - whole) * (value - whole);
        out[k] = (rounded)((int32_t)whole + offset);
    }
    for (; k < BUNDLED * bundles; k++)
        out[k] = 0;
    for (int j = 0; j < PARTS; j++)
        total += squares[j];
    return sqrt(total) * (1 + 0x1p-36) + 0x1p-30;
}

/* Round the users that are left; return whether there is memory. */
static int new_keyed(Keyed *all) {
    Top *top = &all->top;
    int64_t users = top->block->users, bundles = all->bundles = (top->users->columns + BUNDLED - 1) / BUNDLED, longest = 0;
    for (int64_t user = 0; user < users; user++)
        longest = most(longest, top->open[user]);
    int64_t places = top->tiles.chunk + TILE;
    all->memory = malloc(
        users * sizeof *all->rounded + USERS * bundles * sizeof *all->panel +
        ((users + places) * bundles + places) * sizeof(bundle) + (USERS * ROW + 2 * (longest + 1)) * sizeof(int16_t) + 64);
    if (!all->memory)
        return 0;
    all->items = (bundle *)(((uintptr_t)all->memory + 63) / 64 * 64);
    all->rounded = (Rounded *)(all->items + places * bundles);
    all->panel = (int32_t *)(all->rounded + users);
    all->users = (bundle *)(all->panel + USERS * bundles);
    all->bases = all->users + users * bundles;
    all->keys = (int16_t *)(all->bases + places);
    all->highs = all->keys + USERS * ROW;
    all->lows = all->highs + longest + 1;
    for (int64_t user = 0; user < users; user++) {
        Rounded *own = all->rounded + user;
        if (!top->open[user])
            continue;
        double largest = measure(top->users, user, NULL, &own->length);
        own->scale = scale_of(own->length, largest, bundles, LONGEST_USER, LARGEST_USER);
        rounded *out = (rounded *)(all->users + user * bundles);
        own->error = round_row(top->users, user, NULL, own->scale, bundles, OFFSET, out) / own->scale;
    }
    return 1;
}

/* Return which of the places side by side in a tile holds an item, so that shortening brings all into their order. */
INLINE int64_t slot_of(int64_t item) {
    int64_t within = item % 8;
    return !IS_SHORTENED ? item : item / 8 * 4 + within % 4 + (within < 4 ? 0 : LANES);
}

/* Return what the sums of an item start from. */
static bundle base_of(const rounded *row, int64_t bundles) {
    int32_t total = 0;
    for (int64_t k = 0; k < BUNDLED * bundles; k++)
        total += row[k];
    return (bundle)(-OFFSET * total);
}

/* Fetch the factors of an item early: in the order of lengths, items are anywhere in memory. */
INLINE void fetch_item(const Matrix *items, int64_t item) {
    for (int64_t k = 0; k < least(items->columns, 128); k += 16)
        __builtin_prefetch(row_of(items, item) + k * items->column_step);
}

/* Round the items at places low..high - 1 into panels; return what they have in common. */
static Rounded round_items(Keyed *all, int64_t low, int64_t high) {
    const Top *top = &all->top;
    const int32_t *chosen = top->ordered->items;
    Rounded common = {0};
    double largest = 0, length;
    for (int64_t place = low; place < high; place++) {
        fetch_item(top->items, chosen[least(place + AHEAD, high - 1)]);
        largest = fmax(largest, measure(top->items, chosen[place], top->bias, &length));
        common.length = fmax(common.length, length);
    }
    common.scale = scale_of(common.length, largest, all->bundles, LONGEST_ITEM, LARGEST_ITEM);
    bundle *row = (bundle *)all->panel; /* for users later */
    int64_t last = (high - low) / TILE * TILE * all->bundles;
    memset(all->items + last, 0, TILE * all->bundles * sizeof *all->items);
    for (int64_t place = low; place < high; place++) {
        int64_t item = place - low, first = item / TILE * TILE, slot = slot_of(item % TILE);
        bundle *panel = all->items + first * all->bundles + slot;
        double error = round_row(top->items, chosen[place], top->bias, common.scale, all->bundles, 0, (rounded *)row);
        common.error = fmax(common.error, error / common.scale);
        all->bases[first + slot] = base_of((rounded *)row, all->bundles);
        for (int64_t k = 0; k < all->bundles; k++)
            panel[k * TILE] = row[k];
    }
    return common;
}

INLINE sums load_sums(const void *from) {
    sums value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Compute the keys of one panel of users with one panel of items. */
static void key_tile(const int32_t *users, const bundle *items, const bundle *bases, int64_t bundles, int16_t *out) {
    sums totals[USERS][2];
    UNROLLED for (int row = 0; row < USERS; row++) {
        totals[row][0] = OFFSET == 0 ? (sums){0} : load_sums(bases);
        totals[row][1] = OFFSET == 0 ? (sums){0} : load_sums(bases + TILE / 2);
    }
    for (int64_t k = 0; k < bundles; k++) {
        sums left = load_sums(items + k * TILE), right = load_sums(items + k * TILE + TILE / 2);
        __builtin_prefetch(items + (bundles + k) * TILE); /* of the next tile */
        UNROLLED for (int row = 0; row < USERS; row++) {
            wholes user = users[k * USERS + row] - (wholes){0};
            totals[row][0] = add_products(totals[row][0], user, left);
            totals[row][1] = add_products(totals[row][1], user, right);
        }
    }
    UNROLLED for (int row = 0; row < USERS; row++) {
        keys both[2] = {(keys)totals[row][0], (keys)totals[row][1]};
        if (IS_SHORTENED)
            both[0] = shorten((wholes)totals[row][0], (wholes)totals[row][1]);
        memcpy(out + row * ROW, both, TILE * sizeof *out);
    }
}

/* Return a bundle as often as it fits into 32 bits. */
INLINE int32_t repeated(bundle factors) {
    return IS_SHORTENED ? factors : (int32_t)((uint16_t)factors * 0x10001u);
}

/* Compute the keys of some chosen users, at most USERS, with all items of the chunk. */
static void key_panel(Keyed *all, const int32_t *chosen, int64_t size, int64_t n_items) {
    for (int64_t i = 0; i < USERS; i++) {
        const bundle *row = all->users + chosen[least(i, size - 1)] * all->bundles;
        for (int64_t k = 0; k < all->bundles; k++)
            all->panel[k * USERS + i] = repeated(row[k]);
    }
    for (int64_t item = 0; item < n_items; item += TILE)
        key_tile(all->panel, all->items + item * all->bundles, all->bases + item, all->bundles, all->keys + item);
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
    return (int16_t)fmin(fmax(floor(value / UNIT), MASKED), 32767);
}

/* Find the keys that decide, for some targets of one user.

   The sums of rounded factors differ from the scaled exact ones by what rounding adds to either row, times the length
   of the other; the float32 score differs from the exact one by less than a part in 2^23 per addition. */
static void set_bounds(Keyed *all, int64_t user, const Rounded *items, const number *targets, int64_t size) {
    const Rounded *own = all->rounded + user;
    double scale = own->scale * items->scale, columns = all->top.users->columns;
    double rounding = (columns + 8) * (0x1p-23 * own->length * items->length + 0x1p-148);
    double off = own->error * items->length + own->length * items->error + own->error * items->error + rounding;
    double margin = scale * off * (1 + 0x1p-30) + 1;
    for (int64_t t = 0; t < size; t++) {
        all->highs[t] = as_key(scale * targets[t] + margin);
        all->lows[t] = as_key(scale * targets[t] - margin - UNIT);
    }
}

INLINE keys load_keys(const int16_t *from) {
    keys key;
    memcpy(&key, from, sizeof key);
    return key;
}

/* Return the sum of the lanes, which are not negative. */
INLINE int64_t sum_keys(keys counts) {
    return sum(multiply((wholes)counts, (wholes)(1 - (keys){0})));
}

/* Let an item wait for its score, and fetch its factors early; return whether as many wait as are scored together. */
INLINE int is_full_with(Keyed *all, int64_t place) {
    const Matrix *items = all->top.items;
    int64_t item = all->top.ordered->items[place];
    fetch_item(items, item);
    all->waiting[all->n_waiting++] = item;
    return all->n_waiting == CHAINS;
}

/* Does something with one user's masked keys of the items from place `low` on. */
typedef void Take(void *with, int64_t user, const Rounded *items, const int16_t *row, int64_t stop, int64_t low);

/* Compute the keys of the items at places low..high - 1 and of the users whose targets these can reach, and take
   them one user at a time. Return DONE, or GAVE_UP if too many scores had to be computed. */
static int64_t take_chunk(Keyed *all, int64_t low, int64_t high, Take *take, void *with) {
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
            take(with, user, &items, row, end, low);
        }
        all->n_scores += (stop - start) * (high - low);
        if (all->n_close > all->free * top->block->users + all->n_scores / all->share)
            return GAVE_UP;
    }
    return DONE;
}

/* Take the items at places start..stop - 1, and sort the masked ones after the first chunk. */
static int64_t take_places(Keyed *all, int64_t start, int64_t stop, Take *take, void *with) {
    int64_t status = new_top(&all->top) && new_keyed(all) ? DONE : NO_MEMORY;
    for (int64_t low = start, high; low < stop && status == DONE; low = high) {
        high = end_of_chunk(&all->top, low, stop);
        status = take_chunk(all, low, high, take, with);
        if (status == DONE && low == 0 && high < all->top.ordered->size)
            status = sort_masked(&all->top);
    }
    free(all->top.tiles.memory);
    free(all->top.memory);
    free(all->memory);
    return status;
}

#endif
