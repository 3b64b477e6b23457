/* Items drawn for many users, none twice: by rejection, with a set of bits that each user in turn fills and clears, or,
   if draws are many, with a set for each user that is kept from round to round. */

#include <stdlib.h>
#include <string.h>

#include "rows.h"

enum {
    FEW = 16, /* draws that are looked up one by one */
    ABREAST = 32, /* places that are searched for together */
};

/* A set of whole numbers: bit b of words[w] stands for 64 w + b, and bit b of any[a] for whether words[64 a + b] may
   not be 0, so that sparse sets of a large range are listed fast. */
typedef struct {
    uint64_t *words, *any;
    int64_t n_any;
} Set;

static int new_set(Set *set, int64_t range) {
    set->n_any = range / 4096 + 1;
    set->words = calloc(65 * set->n_any, sizeof *set->words);
    set->any = set->words + 64 * set->n_any;
    return set->words != NULL;
}

/* Set the bit of a number, and return whether it was not set. */
static inline int64_t mark(uint64_t *words, int64_t number) {
    uint64_t *word = words + number / 64, bit = (uint64_t)1 << number % 64;
    int64_t is_new = !(*word & bit);
    *word |= bit;
    return is_new;
}

/* Add a number, and return whether it is new. */
static inline int64_t add(Set *set, int64_t number) {
    set->any[number / 4096] |= (uint64_t)1 << number / 64 % 64;
    return mark(set->words, number);
}

static void add_row(Set *set, const Rows *rows, int64_t row) {
    for (int64_t k = rows->begin[row]; k < rows->begin[row + 1]; k++)
        add(set, rows->columns[k]);
}

static void mark_row(uint64_t *words, const Rows *rows, int64_t row) {
    for (int64_t k = rows->begin[row]; k < rows->begin[row + 1]; k++)
        mark(words, rows->columns[k]);
}

static void drop_row(uint64_t *words, const Rows *rows, int64_t row) {
    for (int64_t k = rows->begin[row]; k < rows->begin[row + 1]; k++)
        words[rows->columns[k] / 64] &= ~((uint64_t)1 << rows->columns[k] % 64);
}

/* Write the numbers of one word, which are from `base` on, and return how many they are. */
static inline int64_t list_word(uint64_t word, int64_t base, int64_t *numbers) {
    int64_t size = 0;
    for (; word; word &= word - 1)
        numbers[size++] = base + __builtin_ctzll(word);
    return size;
}

/* Write all numbers, ascending, and leave the set empty. */
static void empty(Set *set, int64_t *numbers) {
    for (int64_t a = 0; a < set->n_any; a++) {
        for (uint64_t any = set->any[a]; any; any &= any - 1) {
            int64_t w = 64 * a + __builtin_ctzll(any);
            numbers += list_word(set->words[w], 64 * w, numbers);
            set->words[w] = 0;
        }
        set->any[a] = 0;
    }
}

/* Add draws to a user's `found` items by the set, and return how many these are then. */
static int64_t add_many(Set *set, const Drawn *drawn, int64_t user, const int64_t *draws, int64_t size, int64_t found) {
    int64_t *items = drawn->items + drawn->begin[user];
    add_row(set, &drawn->excluded, user);
    add_row(set, &drawn->taken, user);
    for (int64_t i = 0; i < found; i++)
        add(set, items[i]);
    for (int64_t i = 0; i < size; i++)
        found += add(set, draws[i]);
    drop_row(set->words, &drawn->excluded, user);
    drop_row(set->words, &drawn->taken, user);
    empty(set, items);
    return found;
}

/* Do as `add_many` by the user's own set; items are written once there are enough. */
static int64_t add_kept(const Drawn *drawn, int64_t user, const int64_t *draws, int64_t size, int64_t found) {
    uint64_t *words = drawn->kept + user * drawn->n_words;
    int64_t *items = drawn->items + drawn->begin[user], room = found + size, listed = 0;
    if (!found) {
        mark_row(words, &drawn->excluded, user);
        mark_row(words, &drawn->taken, user);
    }
    for (int64_t i = 0; i < size; i++)
        found += mark(words, draws[i]);
    if (found < room)
        return found;
    drop_row(words, &drawn->excluded, user);
    drop_row(words, &drawn->taken, user);
    for (int64_t w = 0; w < drawn->n_words && listed + __builtin_popcountll(words[w]) <= room; w++)
        listed += list_word(words[w], 64 * w, items + listed);
    return found;
}

static int is_in_row(const Rows *rows, int64_t row, int64_t item) {
    int is_in = 0;
    for (int64_t k = rows->begin[row]; k < rows->begin[row + 1]; k++)
        is_in |= rows->columns[k] == item;
    return is_in;
}

/* Insert an item into ascending ones, unless it is there; return how many they are then. */
static int64_t insert(int64_t *items, int64_t size, int64_t item) {
    int64_t at = 0;
    for (int64_t i = 0; i < size; i++)
        at += items[i] < item;
    if (at < size && items[at] == item)
        return size;
    memmove(items + at + 1, items + at, (size - at) * sizeof *items);
    items[at] = item;
    return size + 1;
}

/* Do as `add_many` one by one, which is faster for the few that are missing after a first round. */
static int64_t add_few(const Drawn *drawn, int64_t user, const int64_t *draws, int64_t size, int64_t found) {
    int64_t *items = drawn->items + drawn->begin[user];
    for (int64_t i = 0; i < size; i++)
        if (!is_in_row(&drawn->excluded, user, draws[i]) && !is_in_row(&drawn->taken, user, draws[i]))
            found = insert(items, found, draws[i]);
    return found;
}

/* Add a user's draws that are new to the items; return how many draws were used, which is how many were missing. */
static int64_t add_user(Set *set, Drawn *drawn, int64_t user, const int64_t *draws) {
    int64_t found = drawn->found[user], missing = drawn->begin[user + 1] - drawn->begin[user] - found;
    if (!missing)
        return 0;
    if (drawn->kept)
        drawn->found[user] = add_kept(drawn, user, draws, missing, found);
    else
        drawn->found[user] = missing <= FEW ? add_few(drawn, user, draws, missing, found)
                                            : add_many(set, drawn, user, draws, missing, found);
    return missing;
}

/* Return whether all numbers are in 0..range - 1. */
static int are_below(const int64_t *numbers, int64_t size, int64_t range) {
    int is_wrong = 0;
    for (int64_t i = 0; i < size; i++)
        is_wrong |= (uint64_t)numbers[i] >= (uint64_t)range;
    return !is_wrong;
}

/* Return whether the rooms lie within the items, are filled with items of the catalogue, and lack `size` ones. */
static int has_room(const Drawn *drawn, int64_t size) {
    const int64_t *begin = drawn->begin;
    int64_t users = drawn->excluded.count, missing = 0;
    if (drawn->taken.count != users || begin[0] != 0 || begin[users] > drawn->size)
        return 0;
    int is_wrong = 0;
    for (int64_t user = 0; user < users && !is_wrong; user++) {
        int64_t found = drawn->found[user], is_span = begin[user] <= begin[user + 1] && begin[user + 1] <= drawn->size;
        int64_t room = is_span ? begin[user + 1] - begin[user] : -1; /* of other numbers it could overflow */
        is_wrong = found < 0 || found > room ||
                   (!drawn->kept && !are_below(drawn->items + begin[user], found, drawn->n_items));
        missing += is_wrong ? 0 : room - found;
    }
    return !is_wrong && missing == size;
}

int64_t add_draws(Drawn *drawn, const int64_t *draws, int64_t size) {
    int64_t users = drawn->excluded.count;
    if ((drawn->kept && drawn->n_words < drawn->n_items / 64 + 1) || !has_room(drawn, size) || !are_below(draws, size, drawn->n_items) ||
        !lies_within(&drawn->excluded, 0, users, drawn->n_items) ||
        !lies_within(&drawn->taken, 0, users, drawn->n_items))
        return INVALID;
    Set set;
    if (!new_set(&set, drawn->n_items))
        return NO_MEMORY;
    for (int64_t user = 0; user < users; user++)
        draws += add_user(&set, drawn, user, draws);
    free(set.words);
    return DONE;
}

/* Add to each place, at most ABREAST of them, how many of the ascending numbers, less their indices, are not above it. Each
   search has to wait for its own last step, so that several take hardly longer than one. */
static void pass(const int32_t *ascending, int64_t size, int64_t *places, int64_t n_places) {
    int64_t low[ABREAST] = {0};
    for (int64_t half; size > 0; size -= half) {
        half = (size + 1) / 2;
        for (int64_t i = 0; i < n_places; i++) {
            int64_t last = low[i] + half - 1;
            low[i] += half & -(int64_t)(ascending[last] - last <= places[i]);
        }
    }
    for (int64_t i = 0; i < n_places; i++)
        places[i] += low[i];
}

int64_t items_at_places(const Rows *excluded, int64_t n_items, const int64_t *begin, int64_t *places, int64_t size) {
    int64_t users = excluded->count;
    if (begin[0] != 0 || begin[users] != size || !lies_within(excluded, 0, users, n_items))
        return INVALID;
    for (int64_t user = 0; user < users; user++) {
        int64_t first = excluded->begin[user], n_excluded = excluded->begin[user + 1] - first;
        int64_t is_span = begin[user] <= begin[user + 1] && begin[user + 1] <= size;
        if (!is_span || n_excluded > n_items ||
            !are_below(places + begin[user], begin[user + 1] - begin[user], n_items - n_excluded))
            return INVALID;
        for (int64_t i = begin[user]; i < begin[user + 1]; i += ABREAST) {
            int64_t left = begin[user + 1] - i;
            pass(excluded->columns + first, n_excluded, places + i, left < ABREAST ? left : ABREAST);
        }
    }
    return DONE;
}
