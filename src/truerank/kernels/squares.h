/* Sums of outer products in float32, for solving in float64. */

#ifndef SQUARES_H
#define SQUARES_H

#include <stdint.h>

enum {
    PART = 128,  /* rows summed in float32 before the sum is added in float64 */
    STRIP = 16,  /* columns of a strip */
};

/* Add the outer products of `depth` rows with themselves to the upper triangle of `out`.

   The rows are cut into strips of STRIP columns, each a contiguous piece of PART rows: with 128 factors, the
   parts of whole rows that a tile reads would compete for a few sets of the first-level cache. */
void add_squares(const float *strips, int64_t depth, float *out, int64_t width);

/* Add the upper triangle of `products` to `matrix`, and set it to zero in `products`. */
void move_upper(float *products, double *matrix, int64_t width);

#endif
