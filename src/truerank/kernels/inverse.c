/* The steps of inverting a large positive definite matrix, block by block. */

#define NUMBER_BITS 64
#include "kernels.h"
#include "products.h"

enum { BLOCK = 64 }; /* rows and columns of a block: two of them fit into the second-level cache */

int64_t inverse_block(void) {
    return BLOCK;
}

int64_t invert_block(double *block) {
    for (int64_t k = 0; k < BLOCK; k++) {
        double *pivot = block + k * BLOCK, scale = 1 / pivot[k];
        pivot[k] = 1;
        for (int64_t j = 0; j < BLOCK; j++)
            pivot[j] *= scale;
        for (int64_t i = 0; i < BLOCK; i++) {
            double *row = block + i * BLOCK, factor = row[k];
            if (i == k)
                continue;
            row[k] = 0;
            for (int64_t j = 0; j < BLOCK; j++)
                row[j] -= factor * pivot[j];
        }
    }
    return DONE;
}

/* Copy a block of columns of a panel, times `sign`. */
static void copy_block(const double *panel, int64_t width, double sign, double *block) {
    for (int64_t i = 0; i < BLOCK; i++)
        for (int64_t j = 0; j < BLOCK; j++)
            block[i * BLOCK + j] = sign * panel[i * width + j];
}

/* Add x' y, where both are blocks, to the block `out`. */
static void add_block(const double *x, const double *y, double *out, int64_t width) {
    for (int64_t row = 0; row < BLOCK; row += ROWS)
        for (int64_t column = 0; column < BLOCK; column += WIDE * COLUMNS)
            add_tile(WIDE * PER_ROW, x + row, y + column, BLOCK, BLOCK, out + row * width + column, width);
}

int64_t sweep_columns(
    double *matrix, int64_t width, const double *panel, const double *pivot, double *scaled, int64_t start) {
    double left[BLOCK * BLOCK], right[BLOCK * BLOCK] = {0};
    if (width % BLOCK || start % BLOCK || start < 0 || start >= width)
        return INVALID;
    copy_block(panel + start, width, 1, left);
    add_block(pivot, left, right, BLOCK);
    for (int64_t i = 0; i < BLOCK; i++)
        memcpy(scaled + i * width + start, right + i * BLOCK, BLOCK * sizeof *right);
    for (int64_t row = 0; row < start + BLOCK; row += BLOCK) {
        copy_block(panel + row, width, -1, left);
        add_block(left, right, matrix + row * width + start, width);
    }
    return DONE;
}
