/* Scores from factors, one tile of users and items at a time, whose sums stay in registers. */

#ifndef TILES_H
#define TILES_H

#include <stdlib.h>

#include "chains.h"
#include "counting.h"

enum {
    ROW = CHUNK + PANEL, /* from one user's scores to the next: not a power of two, so that caches hold all rows */
    CACHED = 1 << 20,    /* bytes of items that the second-level cache holds beside the scores */
    LEAST_CHUNK = 512,   /* items, a multiple of any PANEL */
};

/* The numbers of a call in the order in which the tiles read them. */
typedef struct {
    int64_t depth; /* factors, the bias included */
    int64_t chunk; /* items that are scored and counted at a time */
    number *users; /* panels of USERS users, factor by factor */
    number *items; /* panels of PANEL items, factor by factor */
    number *scores; /* of one panel of users for one chunk of items: rows of length ROW */
    void *memory;
} Tiles;

/* Return how many items are scored and counted at a time. */
static int64_t items_per_chunk(int64_t depth) {
    int64_t fitting = CACHED / (depth * (int64_t)sizeof(number)) / LEAST_CHUNK * LEAST_CHUNK;
    return most(LEAST_CHUNK, least(fitting, CHUNK));
}

static int new_tiles(Tiles *tiles, int64_t users, int64_t depth) {
    tiles->depth = depth;
    tiles->chunk = items_per_chunk(depth);
    int64_t of_scores = USERS * ROW, of_items = (tiles->chunk + PANEL) * depth, of_users = (users + USERS) * depth;
    tiles->memory = malloc((of_scores + of_items + of_users) * sizeof(number) + 64);
    tiles->scores = (number *)(((uintptr_t)tiles->memory + 63) / 64 * 64);
    tiles->items = tiles->scores + of_scores;
    tiles->users = tiles->items + of_items;
    return tiles->memory != NULL;
}

/* Return the number of the row at a place, in the order of the matrix unless another one is chosen. */
INLINE int64_t row_at(const int32_t *chosen, int64_t place) {
    return chosen ? chosen[place] : place;
}

/* Copy the columns of SIDE rows, as many as make whole squares, into a panel; return the first column that is left. */
INLINE int64_t pack_squares(
    const Matrix *rows, const int32_t *chosen, int64_t place, int64_t width, number *panel) {
    const factor *from[SIDE];
    strip square[SIDE];
    int64_t k = 0;
    for (int i = 0; i < SIDE; i++)
        from[i] = row_of(rows, row_at(chosen, place + i));
    for (; k + SIDE <= rows->columns; k += SIDE) {
        read_square(from, k, square);
        UNROLLED for (int j = 0; j < SIDE; j++)
            UNROLLED for (int i = 0; i < SIDE; i++)
                panel[(k + j) * width + i] = square[j][i];
    }
    return k;
}

/* Copy the columns of one row from `first` on into a panel, with the bias as an additional one. */
static void pack_row(
    const Matrix *rows, const factor *bias, int64_t row, int64_t first, int64_t width, number *panel) {
    for (int64_t k = first; k < rows->columns; k++)
        panel[k * width] = at(rows, row, k);
    if (bias)
        panel[rows->columns * width] = bias[row];
}

/* Copy the rows at places start..stop - 1 into panels of `width` rows, factor by factor, with the bias as an additional
   factor. The width is a constant, so that nothing is divided by it. */
INLINE void pack_chosen(
    const Matrix *rows, const factor *bias, const int32_t *chosen, int64_t start, int64_t stop, int64_t width,
    int64_t depth, number *packed) {
    int64_t last = (stop - start) / width * width * depth;
    int has_squares = rows->column_step == 1 && width % SIDE == 0;
    memset(packed + last, 0, width * depth * sizeof *packed); /* rows missing from the last panel */
    for (int64_t row = start, next; row < stop; row = next) {
        number *panel = packed + (row - start) / width * width * depth + (row - start) % width;
        next = has_squares && row + SIDE <= stop ? row + SIDE : row + 1;
        int64_t first = next - row == SIDE ? pack_squares(rows, chosen, row, width, panel) : 0;
        for (int64_t i = row; i < next; i++)
            pack_row(rows, bias, row_at(chosen, i), first, width, panel + i - row);
    }
}

INLINE void pack(
    const Matrix *rows, const factor *bias, int64_t start, int64_t stop, int64_t width, int64_t depth, number *packed) {
    pack_chosen(rows, bias, NULL, start, stop, width, depth, packed);
}

/* Score the held-out items of one user; return DONE, or INVALID if one is not in the catalogue. */
static int64_t score_held_out(
    const Matrix *users, int64_t user, const Matrix *items, const factor *bias, const Lists *test, Target *found) {
    int64_t chosen[CHAINS], end = test->end[user];
    factor scores[CHAINS];
    for (int64_t index = test->begin[user]; index < end; index += CHAINS) {
        int64_t size = least(CHAINS, end - index);
        for (int64_t i = 0; i < size; i++) {
            chosen[i] = test->items[index + i];
            if (chosen[i] < 0 || chosen[i] >= items->rows)
                return INVALID;
        }
        score_some(users, user, items, bias, chosen, size, scores);
        for (int64_t i = 0; i < size; i++)
            *found++ = (Target){scores[i], index + i};
    }
    return DONE;
}

/* Score the held-out items of all users, and sort them. */
static int64_t find_targets(const Matrix *users, const Matrix *items, const factor *bias, Block *block) {
    Target *found = new_targets(block);
    if (!found)
        return NO_MEMORY;
    int64_t status = DONE;
    for (int64_t user = 0; user < block->users && status == DONE; user++) {
        status = score_held_out(users, user, items, bias, &block->test, found);
        if (status == DONE)
            set_targets(block, user, found);
    }
    free(found);
    return status;
}

/* Score one panel of users with one panel of items. */
static void score_tile(const number *users, const number *items, int64_t depth, number *scores) {
    vector sums[USERS][2], left = load(items), right = load(items + LANES);
    /* Starting a sum from its first product instead of zero gives the same number; with 16 factors it saves
       a seventh of the time. */
    UNROLLED for (int row = 0; row < USERS; row++) {
        sums[row][0] = splat(users[row]) * left;
        sums[row][1] = splat(users[row]) * right;
    }
    for (int64_t k = 1; k < depth; k++) {
        __builtin_prefetch(items + (depth + k) * PANEL); /* of the next tile */
        __builtin_prefetch(items + (depth + k) * PANEL + LANES);
        left = load(items + k * PANEL);
        right = load(items + k * PANEL + LANES);
        UNROLLED for (int row = 0; row < USERS; row++) {
            vector user = splat(users[k * USERS + row]);
            sums[row][0] = fused(user, left, sums[row][0]);
            sums[row][1] = fused(user, right, sums[row][1]);
        }
    }
    UNROLLED for (int row = 0; row < USERS; row++) {
        store(scores + row * ROW, sums[row][0]);
        store(scores + row * ROW + LANES, sums[row][1]);
    }
}

/* Score panel `panel` of the packed users with all `n_items` packed items. */
static void score_panel(const Tiles *tiles, int64_t panel, int64_t n_items) {
    const number *users = tiles->users + panel * USERS * tiles->depth;
    for (int64_t item = 0; item < n_items; item += PANEL)
        score_tile(users, tiles->items + item * tiles->depth, tiles->depth, tiles->scores + item);
}

#endif
