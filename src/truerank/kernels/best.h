/* The k best items of each user, from the same scores as the counts.

   Scores that are not below the k-th best so far, few after the first chunk, are collected. Once there are 2k of them,
   all but the k best are dropped; of equal scores those of lower items stay. The rows of the result are sorted in
   the end. */

#ifndef BEST_H
#define BEST_H

#include "tiles.h"

/* What was collected for one user. */
typedef struct {
    number *scores, *spare; /* room for 2k, and two panels more */
    whole *items;
    whole *numbers, base; /* those of the items whose scores are searched, less `base` */
    int64_t k, size;
    number bound; /* the k-th best score so far, of which only an item below `last` is better */
    whole last;
    number *bounds; /* the bound of each user, and the last item */
    whole *lasts;
    Target *sorted; /* room for 2k */
    void *memory;
} Search;

/* Find the k-th best score of a user, as far as they are found, and the last item that has it. */
static void find_bound(Search *search, const Best *best, int64_t user) {
    const number *scores = (const number *)best->scores + user * best->k;
    const int32_t *items = best->items + user * best->k;
    search->bounds[user] = best->found[user] < best->k ? -INFINITY : scores[0];
    search->lasts[user] = 0;
    if (best->found[user] < best->k)
        return;
    for (int64_t i = 0; i < best->k; i++)
        search->bounds[user] = scores[i] < search->bounds[user] ? scores[i] : search->bounds[user];
    for (int64_t i = 0; i < best->k; i++)
        if (scores[i] == search->bounds[user])
            search->lasts[user] = most(search->lasts[user], items[i]);
}

static int new_search(Search *search, const Best *best) {
    int64_t k = best->k, room = 2 * (k + PANEL), numbers = 3 * room + ROW + 2 * best->users; /* a whole is as large */
    search->k = k;
    search->base = 0;
    search->memory = malloc(2 * k * sizeof(Target) + numbers * sizeof(number));
    if (!search->memory)
        return 0;
    search->sorted = search->memory;
    search->scores = (number *)(search->sorted + 2 * k);
    search->spare = search->scores + room;
    search->bounds = search->spare + room;
    search->items = (whole *)(search->bounds + best->users);
    search->lasts = search->items + room;
    search->numbers = search->lasts + best->users;
    for (int64_t i = 0; i < ROW; i++)
        search->numbers[i] = i;
    for (int64_t user = 0; user < best->users; user++)
        find_bound(search, best, user);
    return 1;
}

static int has_valid_spans(const Best *best) {
    int valid = best->k > 0;
    for (int64_t user = 0; user < best->users; user++)
        valid &= is_within(&best->excluded, user) & (best->found[user] >= 0) & (best->found[user] <= best->k);
    return valid;
}

/* Move the numbers above the pivot, or else those below it, to the front; return how many they are. */
INLINE int64_t keep_side(number *numbers, int64_t stop, number pivot, int is_above) {
    int64_t size = 0;
    for (int64_t j = 0; j < stop; j += LANES) {
        vector value = load(numbers + j);
        size += keep_only_hits(numbers + size, value, is_above ? value > splat(pivot) : value < splat(pivot));
    }
    return size;
}

/* Return the k-th largest number. The numbers are overwritten, and so is a vector after them. */
static number find_kth(number *numbers, int64_t size, int64_t k) {
    for (;;) {
        number a = numbers[0], b = numbers[size / 2], c = numbers[size - 1];
        number pivot = a > b ? (b > c ? b : (a > c ? c : a)) : (a > c ? a : (b > c ? c : b)); /* the middle one */
        int64_t above = 0, equal = 0, stop = fill(numbers, size);
        compare(1, numbers, stop, &pivot, &pivot, &above, &equal);
        if (k <= above) {
            size = keep_side(numbers, stop, pivot, 1);
        } else if (k <= above + equal) {
            return pivot;
        } else {
            size = keep_side(numbers, stop, pivot, 0);
            k -= above + equal;
        }
    }
}

/* Add the hits among a vector of scores, and their items, behind the others. */
INLINE void add(Search *search, vector score, wholes items, wholes hits) {
    keep_only_hits((number *)(search->items + search->size), (vector)items, hits);
    search->size += keep_only_hits(search->scores + search->size, score, hits);
}

INLINE wholes load_items(const whole *from) {
    wholes items;
    memcpy(&items, from, sizeof items);
    return items;
}

/* Keep only the scores from `kth` on. */
static void keep_from(Search *search, number kth) {
    int64_t stop = fill(search->scores, search->size);
    search->size = 0;
    for (int64_t j = 0; j < stop; j += LANES) {
        vector score = load(search->scores + j);
        add(search, score, load_items(search->items + j), score >= splat(kth));
    }
}

/* Return the last item that stays of those whose score is `kth`, `surplus` of which are too many. */
static whole find_last(Search *search, number kth, int64_t surplus) {
    whole *tied = (whole *)search->spare;
    int64_t size = 0;
    for (int64_t i = 0; i < search->size; i++)
        if (search->scores[i] == kth) { /* mostly they ascend already */
            int64_t at = size++;
            for (; at > 0 && tied[at - 1] > search->items[i]; at--)
                tied[at] = tied[at - 1];
            tied[at] = search->items[i];
        }
    return tied[size - surplus - 1];
}

/* Drop the last of the items whose score is `kth`, as many as are more than k. */
static void drop_ties(Search *search, number kth) {
    int64_t kept = 0;
    for (int64_t i = 0; i < search->size; i++) {
        search->scores[kept] = search->scores[i];
        search->items[kept] = search->items[i];
        kept += search->scores[i] > kth || search->items[i] <= search->last;
    }
    search->size = kept;
}

/* Drop all but the k best of what was collected. */
static void cut(Search *search) {
    if (search->size <= search->k)
        return;
    memcpy(search->spare, search->scores, search->size * sizeof *search->scores);
    number kth = find_kth(search->spare, search->size, search->k);
    keep_from(search, kth);
    search->last = find_last(search, kth, search->size - search->k);
    if (search->size > search->k)
        drop_ties(search, kth);
    search->bound = kth;
}

/* Collect the scores of a panel, from place `start` on, that may be among the best. */
static void collect(Search *search, const number *scores, int64_t start) {
    UNROLLED for (int64_t j = start; j < start + PANEL; j += LANES) {
        vector score = load(scores + j), bound = splat(search->bound);
        wholes items = load_items(search->numbers + j) + search->base;
        add(search, score, items, (score > bound) | ((score == bound) & (items < search->last - (wholes){0})));
    }
    if (search->size >= 2 * search->k)
        cut(search);
}

/* Continue with what was found for a user in earlier chunks. */
static void resume(Search *search, const Best *best, int64_t user) {
    const number *scores = (const number *)best->scores + user * best->k;
    search->size = best->found[user];
    memcpy(search->scores, scores, search->size * sizeof *scores);
    for (int64_t i = 0; i < search->size; i++)
        search->items[i] = best->items[user * best->k + i];
    search->bound = search->bounds[user];
    search->last = search->lasts[user];
}

/* Write what was found for a user. */
static void finish(Search *search, Best *best, int64_t user) {
    cut(search);
    search->bounds[user] = search->bound;
    search->lasts[user] = search->last;
    best->found[user] = search->size;
    memcpy((number *)best->scores + user * best->k, search->scores, search->size * sizeof *search->scores);
    for (int64_t i = 0; i < search->size; i++)
        best->items[user * best->k + i] = (int32_t)search->items[i];
}

/* Sort the rows, with the best first, and of equal scores the lower item first. */
static void sort_rows(const Search *search, Best *best) {
    for (int64_t user = 0; user < best->users; user++) {
        number *scores = (number *)best->scores + user * best->k;
        int32_t *items = best->items + user * best->k;
        int64_t size = best->found[user];
        for (int64_t i = 0; i < size; i++)
            search->sorted[i] = (Target){scores[i], items[i]};
        sort_targets(search->sorted, size, search->sorted + size);
        for (int64_t i = 0; i < size; i++) {
            Target next = search->sorted[i];
            int64_t at = i;
            for (; at > 0 && scores[at - 1] == next.score && items[at - 1] > next.index; at--) {
                scores[at] = scores[at - 1];
                items[at] = items[at - 1];
            }
            scores[at] = next.score;
            items[at] = (int32_t)next.index;
        }
    }
}

/* Make each user's bound the one target of a block, of which no count is ever needed; return whether there is memory. */
static int set_bounds_as_targets(Block *block, Search *search) {
    int64_t users = block->users, *places = calloc(2 * users + 1, sizeof *places);
    if (!places)
        return 0;
    block->targets = search->bounds;
    block->above = places;
    block->test = (Lists){.size = users, .begin = places + users, .end = places + users + 1, .next = places + users};
    for (int64_t user = 0; user <= users; user++)
        places[users + user] = user;
    return 1;
}

#endif
