/* Random items for one user after the other; `draw_items` in kernels.h says which. */

#ifndef DRAWS_H
#define DRAWS_H

#include "kernels.h"

/* Sets of items, as bits, which are all 0 between users, except for bits after the last item. */
typedef struct {
    int64_t n_items, n_words;
    uint64_t *blocked, *chosen;
    int32_t *candidates;
    uint8_t places[256][8]; /* of the bits of each byte */
} Board;

int new_board(Board *board, int64_t n_items);
void free_board(Board *board);

/* Write the items of one user, with room for 8 more, and to `seen`, unless it is NULL, whether each item of `taken` is
   excluded, too. Reading stops at an item that is not in the catalogue. Return DONE or INVALID. */
int64_t draw_for_user(
    Board *board, const Draws *draws, int64_t user, Lists *excluded, Lists *taken, uint8_t *seen, int32_t *items);

#endif
