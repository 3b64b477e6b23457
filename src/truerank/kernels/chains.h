/* Scores of single pairs of factors: the chain of fused multiply-adds that defines a score (see kernels.h), for one
   item, or for several side by side, because each step of a chain waits for the one before it. */

#ifndef CHAINS_H
#define CHAINS_H

#include <math.h>

#include "kernels.h"
#include "vectors.h"

enum {
    SIDE = 16 / sizeof(factor), /* rows and columns of a square of factors, which is transposed in registers */
    SQUARES = 4,                /* that many at the same time hide how long a multiply-add takes */
    CHAINS = SIDE * SQUARES,
};

typedef factor strip __attribute__((vector_size(16)));

INLINE factor at(const Matrix *matrix, int64_t row, int64_t column) {
    return ((const factor *)matrix->numbers)[row * matrix->row_step + column * matrix->column_step];
}

INLINE const factor *row_of(const Matrix *matrix, int64_t row) {
    return (const factor *)matrix->numbers + row * matrix->row_step;
}

/* Return the length of a row, of which the first `columns` count. */
static double length(const Matrix *rows, int64_t row, int64_t columns) {
    enum { PARTS = 8 }; /* sums side by side, because each addition waits for the one before it */
    double parts[PARTS] = {0}, total = 0;
    for (int64_t k = 0; k < columns; k++)
        parts[k % PARTS] += (double)at(rows, row, k) * at(rows, row, k);
    for (int i = 0; i < PARTS; i++)
        total += parts[i];
    return sqrt(total);
}

/* Exchange rows and columns of a square. */
INLINE void transpose(strip *square) {
#if FACTOR_BITS == 32
    strip low = __builtin_shufflevector(square[0], square[1], 0, 4, 1, 5);
    strip high = __builtin_shufflevector(square[0], square[1], 2, 6, 3, 7);
    strip next_low = __builtin_shufflevector(square[2], square[3], 0, 4, 1, 5);
    strip next_high = __builtin_shufflevector(square[2], square[3], 2, 6, 3, 7);
    square[0] = __builtin_shufflevector(low, next_low, 0, 1, 4, 5);
    square[1] = __builtin_shufflevector(low, next_low, 2, 3, 6, 7);
    square[2] = __builtin_shufflevector(high, next_high, 0, 1, 4, 5);
    square[3] = __builtin_shufflevector(high, next_high, 2, 3, 6, 7);
#else
    strip first = __builtin_shufflevector(square[0], square[1], 0, 2);
    square[1] = __builtin_shufflevector(square[0], square[1], 1, 3);
    square[0] = first;
#endif
}

/* Read SIDE numbers from each of SIDE rows, and return them with the rows side by side. */
INLINE void read_square(const factor *const *rows, int64_t column, strip *square) {
    UNROLLED for (int i = 0; i < SIDE; i++)
        memcpy(square + i, rows[i] + column, sizeof *square);
    transpose(square);
}

/* Return one score. */
static factor score(const Matrix *users, int64_t user, const Matrix *items, const factor *bias, int64_t item) {
    factor total = 0;
    for (int64_t k = 0; k < items->columns; k++)
        total = FUSED_FACTORS(at(users, user, k), at(items, item, k), total);
    return bias ? total + bias[item] : total;
}

/* Write the scores of up to CHAINS items for one user; float32.c and float64.c have it for all others. */
#if FACTOR_BITS == 32
#define score_some score_some_float32
#else
#define score_some score_some_float64
#endif
void score_some(
    const Matrix *users, int64_t user, const Matrix *items, const factor *bias, const int64_t *chosen, int64_t size,
    factor *scores);

#endif
