/* Sums of outer products, one tile at a time, which stays in registers. */

#ifndef PRODUCTS_H
#define PRODUCTS_H

#include "vectors.h"

enum {
    COLUMNS = 64 / sizeof(number), /* of a tile; the row length of every matrix is a multiple of this */
    ROWS = VECTOR_BYTES == 64 ? 8 : 4,
    PER_ROW = COLUMNS / LANES,
    WIDE = VECTOR_BYTES == 64 ? 2 : 1, /* tiles side by side that still fit into the registers */
};

/* Add to a tile of `out`, whose rows are `width` numbers apart, the outer products of pieces of x and y.

   There are `depth` pieces: ROWS numbers of x and `parts` vectors of y, the next ones `step` further. */
INLINE void add_tile(
    int parts, const number *x, const number *y, int64_t step, int64_t depth, number *out, int64_t width) {
    vector sums[ROWS][WIDE * PER_ROW];
    UNROLLED for (int row = 0; row < ROWS; row++)
        UNROLLED for (int part = 0; part < parts; part++)
            sums[row][part] = load(out + row * width + part * LANES);
    for (int64_t k = 0; k < depth; k++)
        UNROLLED for (int row = 0; row < ROWS; row++)
            UNROLLED for (int part = 0; part < parts; part++)
                sums[row][part] =
                    fused(splat(x[k * step + row]), load(y + k * step + part * LANES), sums[row][part]);
    UNROLLED for (int row = 0; row < ROWS; row++)
        UNROLLED for (int part = 0; part < parts; part++)
            store(out + row * width + part * LANES, sums[row][part]);
}

/* Add x' y to the upper triangle of `out`, from row and column `start` on; all rows have `width` numbers. */
static void add_upper(const number *x, const number *y, int64_t depth, int64_t start, number *out, int64_t width) {
    for (int64_t column = start; column < width; column += COLUMNS)
        for (int64_t row = start; row < column + COLUMNS; row += ROWS)
            add_tile(PER_ROW, x + row, y + column, width, depth, out + row * width + column, width);
}

#endif
