/* Sums of the outer products of rows of factors with themselves, in float32. */

#define NUMBER_BITS 32
#include "squares.h"

#include "kernels.h"
#include "products.h"

void add_squares(const float *strips, int64_t depth, float *out, int64_t width) {
    for (int64_t column = 0; column < width; column += COLUMNS)
        for (int64_t row = 0; row < column + COLUMNS; row += ROWS) {
            const float *left = strips + row / STRIP * STRIP * PART + row % STRIP;
            add_tile(PER_ROW, left, strips + column * PART, STRIP, depth, out + row * width + column, width);
        }
}

void move_upper(float *products, double *matrix, int64_t width) {
    for (int64_t i = 0; i < width; i++)
        for (int64_t j = i / COLUMNS * COLUMNS; j < width; j++) {
            matrix[i * width + j] += products[i * width + j];
            products[i * width + j] = 0;
        }
}

int64_t sum_squares(const float *factors, int64_t width, int64_t start, int64_t stop, double *total, float *products) {
    if (width % COLUMNS)
        return INVALID;
    memset(total, 0, width * width * sizeof *total);
    memset(products, 0, width * width * sizeof *products);
    for (int64_t first = start; first < stop; first += PART) {
        const float *rows = factors + first * width;
        add_upper(rows, rows, least(PART, stop - first), 0, products, width);
        move_upper(products, total, width);
    }
    return DONE;
}
